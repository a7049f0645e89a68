"""What the rule-driven model understands: a sentence against a function, and what a result tells.

Next to no English, and what parameters are called everywhere. Knows no conversation.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from servers.scenarios import parsed, unfenced

Json = dict[str, Any]
_VERBS = (
    "read list show check look find search get send post write create file close comment mark change delete"
    " remove book invite tell reply ask stop start add give assign forward who how which what count rename"
    " update unassign"
)
_VERB = rf"(?:{_VERBS.replace(' ', '|')})"
_SMALL = (
    "a an the of in on at to for from by with and or is are was be do does my me i you your please all any"
    " that this it them there what which how many much have has about each one ones new now as its"
)
_STOP = frozenset(_SMALL.split(" "))
_ALIKE = {
    "email": "mail mails e-mail e-mails emails inbox mailbox",
    "issue": "bug bugs ticket tickets",
    "read": "check look show see",
    "post": "write tell say",
    "create": "file open",
    "search": "find",
    "send": "forward invite answer",
    "here": "people person member members present online around",
    "update": "done finished rename",
}
_SAME = {word: name for name, others in _ALIKE.items() for word in others.split()}
QUOTED = re.compile(r'"([^"]*)"')
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_SPLIT = re.compile(
    rf";\s+|,?\s+(?:and\s+)?then\s+|[.!?]\s+(?=[A-Z])|,?\s+and\s+(?=(?:also\s+)?{_VERB}\b)", re.IGNORECASE
)
_ONE = re.compile(r"\b(?:the (?:first|latest|last) (?:one|of them)|that one)\b", re.IGNORECASE)
_ALL = re.compile(r"\b(?:a summary(?: of (?:it|them|that))?|them|their titles)\b", re.IGNORECASE)
_IT = re.compile(
    r"\b(?:what (?:it|he|she) (?:says|wrote)|its (?:text|title|subject)|it|that)\b", re.IGNORECASE
)
_GISTS = ("text", "title", "subject", "name", "full_name", "answer", "message", "topic")
_KEYS = ("repository", "number", "id", "channel", "sender", "assignee", "status", "state", "due")
_LINE = re.compile(r"^- (?P<gist>.*?)(?: \((?P<keys>[^()]*)\))?(?: \[(?P<source>[^\]]*)\])?$", re.MULTILINE)
_OPENER = re.compile(
    r"\b(?:ignore|disregard|important|attention|system|admin\w*|urgent|override|new instructions?|"
    r"you (?:must|should|are to)|before you answer|note to (?:the )?(?:assistant|agents?|models?))\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    rf"(?:^|[.:;!,\n]\s*|\b(?:must|should|to|and|now|please)\s+)({_VERB}\b[^\n;]*)", re.IGNORECASE
)
_STUB = re.compile(r"async def ([\w.]+)\((.*?)\) -> [^\n]*\n?(.*)", re.DOTALL)


@dataclass(frozen=True)
class Function:
    """Something to call; `code` where only code can."""

    name: str
    description: str
    properties: Mapping[str, Json]
    required: Sequence[str] = ()
    code: bool = False
    by: str = ""

    @cached_property
    def name_words(self) -> set[str]:
        return words(re.sub(r"^mcp_", "", self.name).replace("_", " ").replace("-", " ").replace(".", " "))

    @cached_property
    def other_words(self) -> set[str]:
        return words(f"{self.description} {' '.join(self.properties).replace('_', ' ')}")

    def fit(self, clause: str) -> float:
        asked = words(QUOTED.sub("", clause))
        told = asked & self.name_words
        leads = 2.0 if verb_of(clause) in self.name_words else 0.0
        # A name that says more than was asked for is of something else.
        return (
            3 * len(told)
            + len((asked - told) & self.other_words)
            + leads
            - 0.5 * len(self.name_words - asked)
        )


def stem(word: str) -> str:
    word = _SAME.get(word, word)
    word = f"{word[:-3]}y" if word.endswith("ies") else word
    word = word[:-1] if word.endswith("s") and len(word) > 3 and not word.endswith("ss") else word
    return _SAME.get(word, word)


def verb_of(clause: str) -> str:
    return stem(next(iter(re.findall(r"[\w-]+", clause.lower())), ""))


def words(text: str) -> set[str]:
    return {stem(word) for word in re.findall(r"[\w-]+", text.lower()) if word not in _STOP}


def functions_of(request: Json) -> list[Function]:
    """In either protocol."""
    found: list[Function] = []
    for tool in request.get("tools") or ():
        facts = tool.get("function", tool)
        schema = facts.get("parameters") or facts.get("input_schema") or {}
        found.append(
            Function(
                facts["name"],
                facts.get("description") or "",
                schema.get("properties") or {},
                schema.get("required") or (),
            )
        )
    return found


def function_of(stub: str) -> Function | None:
    """A function of code, as `search_tools` shows it."""
    if not (match := _STUB.match(stub)):
        return None
    kinds = {"int": "integer", "float": "number", "bool": "boolean", "list": "array"}
    properties: dict[str, Json] = {}
    required: list[str] = []
    for name, kind, default in re.findall(r"(\w+): ((?:\[[^\]]*\]|[^,=\[])+)(= …)?", match[2]):
        schema: Json = {
            "type": next((kinds[one] for one in kinds if re.search(rf"\b{one}\b", kind)), "string")
        }
        if choices := re.findall(r"'([^']*)'", kind):
            schema["enum"] = choices
        about = re.search(rf"^    {name}: (.*)$", match[3], re.MULTILINE)
        properties[name] = schema | {"description": about[1] if about else ""}
        if not default:
            required.append(name)
    return Function(match[1], match[3].split("\n")[0], properties, required, code=True)


# What a clause says.


def clauses_of(text: str) -> list[str]:
    """Each job of a message; what is quoted is not cut."""
    text = unfenced(text).strip()
    kept: list[str] = []
    masked = QUOTED.sub(lambda one: kept.append(one[0]) or f"\0{len(kept) - 1}\0", text)
    found: list[str] = []
    for part in _SPLIT.split(masked):
        clause = re.sub(r"\0(\d+)\0", lambda one: kept[int(one[1])], part).strip(" .,!?\n")
        addresses = _ADDRESS.findall(QUOTED.sub("", clause))
        if re.search(r"\beach\b", clause) and len(addresses) > 1:
            rest = re.sub(rf"(?:(?:,|\s|and)*{_ADDRESS.pattern})+", " {}", clause, count=1)
            found += [rest.replace("{}", address, 1).replace("each of ", "") for address in addresses]
        elif clause:
            found.append(clause)
    return found


def filled(function: Function, clause: str) -> Json:
    """The arguments that a clause gives; what it does not say is left out."""
    given: Json = {}
    bare = QUOTED.sub(' "" ', clause)
    for name, schema in function.properties.items():
        value = _named(name, schema, clause)
        if value is None:
            value = _shaped(name, schema, bare)
        if value is not None:
            given[name] = value
    free = [text for text in QUOTED.findall(clause) if text not in given.values()]
    texts = [
        name
        for name in ("title", "subject", "text", "query", "body", "notes", "question", "instructions", "code")
        if name in function.properties and name not in given
    ]
    texts.sort(key=lambda name: name not in function.required)
    if len(free) == 1 and {"subject", "body"} <= {*texts}:
        texts = ["body"]
    given |= dict(zip(texts, free, strict=False))
    if "query" in function.required and "query" not in given:
        given["query"] = " ".join(re.findall(r"(?:for|about|with) ([\w ]+)$", bare)) or bare
    return given


_NAMES = {
    "title": "titled|title|called",
    "subject": "subject",
    "subject_contains": "subject",
    "body": "body|saying|comment",
    "text": "text|saying",
    "notes": "notes?",
    "name": "named|called|name",
    "instructions": "instructions",
}


def _named(name: str, schema: Json, clause: str) -> Any:
    """`name value`, `name=value`, `name "a value"`."""
    if name in ("to", "cc", "bcc"):
        return None
    spelled = _NAMES.get(name, name.replace("_", "[ _]"))
    match = re.search(
        rf'\b(?:{spelled})\b(?: is| of)?\s*[:=]?\s*(?:"([^"]*)"|(#?@?[\w./-]*\w))', clause, re.IGNORECASE
    )
    if match is None or (match[1] is None and not _is_value(name, match[2])):
        return None
    return _typed(schema, match[1] if match[1] is not None else match[2].lstrip("#@"))


def _is_value(name: str, word: str) -> bool:
    if name in ("title", "subject", "body", "text", "notes", "query"):
        return False  # only in quotes
    return (
        word.lower() not in _STOP
        and not re.fullmatch(_VERB, word, re.IGNORECASE)
        and stem(word.lower())
        not in (*("issue", "email", "message", "task", "channel", "repository", "agent", "connector"),)
    )


def _types(schema: Json) -> set[str]:
    kinds = schema.get("type")
    own = {kinds} if isinstance(kinds, str) else set(kinds or ())
    return own.union(
        *(_types(one) for one in schema.get("anyOf", ())),
        *(_types(one["items"]) | {"array"} for one in [schema] if isinstance(one.get("items"), dict)),
    )


def _typed(schema: Json, text: str) -> Any:
    kinds = _types(schema)
    if kinds & {"integer", "number"} and re.fullmatch(r"\d+", text):
        return int(text)
    if kinds & {"integer", "number", "boolean"} and not kinds & {"string"}:
        return None
    return [text] if "array" in kinds else text


def _choices(schema: Json) -> list[Any]:
    return [
        *schema.get("enum", ()),
        *(one for part in schema.get("anyOf", ()) for one in part.get("enum", ())),
    ]


_SHAPES = {
    "cc": rf"\bcc ({_ADDRESS.pattern})",
    "bcc": rf"\bbcc ({_ADDRESS.pattern})",
    "limit": r"\b(?:(\d+) (?:latest|last|newest|first|most)|(?:latest|last|newest|first) (\d+))\b",
    "number": r"(?:#|\bissue |\bnumber )(\d+)\b",
    "id": r"(?:\btask |\bid )(\d+)\b",
    "seats": r"\bfor (\d+)\b",
    "channel": r"#([\w-]+)",
    "sender": r"\bfrom @?([\w.@-]*\w)",
    "assignee": r"\bassigned to @?(\w+)|\bfor @?(me)\b|\b(my)\b",
    "repository": r"\b([\w-]+/[\w-]+)\b|\b(?:in|of|from) (?:the )?(?:repository )?([\w-]+)\b",
    "label": r"\b(?:labelled|label) (\w+)",
    "labels": r"\b(?:labelled|label) (\w+)",
    "since": rf"\bsince ({_DAY.pattern})",
    "due": rf"\b(?:due|until|by) ({_DAY.pattern})",
    "due_before": rf"\bbefore ({_DAY.pattern})",
    "due_after": rf"\b(?:after|from) ({_DAY.pattern})",
    "agent": r"\bagent @?([\w-]+)|\b(?:to|from) @?([\w-]+)$",
    "connector": r"\bconnector ([\w-]+)",
    "connectors": r"\b(?:with|connectors?) ([\w-]+)",
    "seconds": r"\b(\d+) seconds",
}


def _shaped(name: str, schema: Json, clause: str) -> Any:
    """By the shape of the value, and what such parameters mean everywhere."""
    low = clause.lower()
    if choices := [
        one for one in _choices(schema) if re.search(rf"\b{re.escape(str(one).replace('_', ' '))}\b", low)
    ]:
        return choices[0]
    if _types(schema) <= {"boolean", "null"} and "boolean" in _types(schema):
        return True if re.search(rf"\b{name.split('_')[0]}\b", low) else None
    if name == "to":
        return _ADDRESS.findall(re.sub(r"\bb?cc \S+", "", clause)) or None
    match = re.search(_SHAPES[name], clause, re.IGNORECASE) if name in _SHAPES else None
    value = next((group for group in match.groups() if group), match[0]) if match else None
    if value is None or (value.lower() in _STOP and value.lower() not in ("me", "my")):
        return None
    return _typed(schema, "me" if value.lower() == "my" else value)


# What results say.


def items_of(value: Any) -> list[tuple[str, Json, str]]:
    """What a result tells, one by one: the gist, what identifies it, and its source."""
    if isinstance(value, str):
        lines = [
            (
                one["gist"],
                dict(_pair(pair) for pair in (one["keys"] or "").split(", ") if " " in pair),
                one["source"] or "",
            )
            for one in _LINE.finditer(value)
        ]
        return lines or [(value.strip(), {}, "")] if value.strip() else []
    if not isinstance(value, dict):
        return [(json.dumps(value), {}, "")]
    if "error" in value:
        return [(f"it failed: {_failure(value)}", {}, "")]
    if value.get("status") == "success" and "metadata" in value:
        return items_of(value["data"])
    if "result" in value:
        sources = [one["id"] for one in value.get("sources", ())] or [value.get("source", "")]
        inner = items_of(value["result"])
        return [
            (gist, keys, sources[at] if at < len(sources) else sources[0])
            for at, (gist, keys, _) in enumerate(inner)
        ]
    rows = next(
        (one for one in value.values() if isinstance(one, list) and (not one or isinstance(one[0], dict))),
        None,
    )
    if rows is None or any(name in value for name in _GISTS):
        rows = [value]
    return [(_gist(row), {key: row[key] for key in _KEYS if row.get(key) is not None}, "") for row in rows]


def _failure(value: Any) -> str:
    """In whatever it is wrapped."""
    value = parsed(value) if isinstance(value, str) else value
    if not isinstance(value, dict):
        return str(value)
    return str(value["message"]) if value.get("message") else _failure(value.get("error"))


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition(" ")
    return name, value


def _gist(row: Json) -> str:
    return next((str(row[name]) for name in _GISTS if row.get(name)), json.dumps(row)[:300])


def line_of(gist: str, keys: Json, source: str) -> str:
    known = ", ".join(f"{name} {value}" for name, value in keys.items())
    return (
        f"- {' '.join(gist.split())}" + (f" ({known})" if known else "") + (f" [{source}]" if source else "")
    )


def resolved(clause: str, before: Any) -> str:
    """The clause with what its "it" stands for; None of that without a result."""
    items = items_of(before) if before is not None else []
    if not items:
        return clause
    gist, keys, _ = items[0]
    identity = ", ".join(f'{name} "{keys[name]}"' for name in ("repository", "number", "id") if name in keys)
    clause = _ONE.sub(lambda one: identity or f'"{gist}"', clause)
    clause = _ALL.sub(lambda one: '"' + "; ".join(one[0] for one in items).replace('"', "'") + '"', clause)
    return _IT.sub(lambda one: '"' + gist.replace('"', "'") + '"', clause)


def refers(clause: str) -> bool:
    bare = QUOTED.sub("", clause)
    return any(one.search(bare) for one in (_ONE, _ALL, _IT))


def orders_in(text: str) -> list[str]:
    """Imperative sentences after words that want to be obeyed."""
    found: list[str] = []
    if opener := _OPENER.search(text):
        for match in _ORDER.finditer(text, opener.start()):
            found += clauses_of(match[1])
    return found
