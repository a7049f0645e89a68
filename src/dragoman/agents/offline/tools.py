"""A tool as matching reads it: words that weigh, vectors, what it does to the world, its parameters.

Made from the definition that the request carries, and kept by its fingerprint: a tool is read once.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Protocol, cast

import orjson
from numpy.typing import NDArray

from dragoman.agents.offline.grammar import CHANGES, REQUEST_NAMES, SUFFIXES, Deed, deeds_of
from dragoman.agents.offline.parameters import Parameter, parameters_in
from dragoman.catalog.search.words import parts, stem, terms

_MOST_KEPT = 4_000
_MOST_TEXT = 2_000
_MARK = re.compile(r"^\s*\[(?:MCP:)?([^\]]{1,60})\]\s*")
_LISTED = re.compile(
    r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+[`*\"']*([\w][\w.@/-]{0,63})[`*\"']*[ \t]*(?:[:—–-]|\()[ \t]*(.*)$", re.M
)
_HEADING = re.compile(r"^(?![ \t]*[-*•] )[ \t#*]*([A-Za-z][^\n]{0,200}?)[ *]*:[ *]*$|^#+[ \t]*(.+)$", re.M)
_TOPIC = 4  # words of a heading that say what it is about
# A tool that finds tools, and tools that take a part of this loop rather than of the work.
_ASIDE = frozenset({"state_plan", "ask_person", "run_code", "final_result", "call_tool", "load_capability"})
_FIELDS = (("name", 3.0, 3.0), ("description", 1.0, 15.0), ("parameters", 0.5, 15.0), ("connector", 1.0, 1.5))

Vector = NDArray[Any]


class Embedder(Protocol):
    def of(self, text: str) -> Vector: ...

    def knows(self, word: str) -> bool: ...


class Definition(Protocol):
    """The part of pydantic-ai's `ToolDefinition` that matching reads."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str | None: ...

    @property
    def parameters_json_schema(self) -> dict[str, Any]: ...

    @property
    def metadata(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class Listed:
    """A value that a text lists as possible, what is said of it, and the heading it stands under."""

    value: str
    description: str
    heading: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Something to match a request to. `given` are arguments that are settled by choosing it."""

    name: str
    title: str
    summary: str
    parameters: tuple[Parameter, ...]
    deeds: frozenset[Deed]
    verb: str
    is_read_only: bool
    weights: Mapping[str, float]
    meaning: Vector
    scope: Vector
    name_stems: frozenset[str]
    noun_stems: frozenset[str]
    listed: tuple[Listed, ...] = ()
    given: Mapping[str, Any] | None = None
    finds_tools: bool = False
    mentions: frozenset[str] = frozenset()
    """Stems of the names that some text lists as values of its parameters."""


class Reader:
    """Reads definitions, and keeps what it read. Not for two threads at once."""

    def __init__(self, words: Embedder) -> None:
        self.words = words
        self._kept: OrderedDict[bytes, Candidate] = OrderedDict()
        self._lists: OrderedDict[str, tuple[Listed, ...]] = OrderedDict()
        self._by_identity: dict[int, tuple[Any, bytes]] = {}

    def candidates(self, tools: Iterable[Definition], instructions: str) -> list[Candidate]:
        found: list[Candidate] = []
        for tool in tools:
            if tool.name not in _ASIDE:
                candidate = self.read(tool)
                found += self._per_value(candidate, instructions) or [
                    self._mentioning(candidate, instructions)
                ]
        return found

    def read(self, tool: Definition) -> Candidate:
        key = self._fingerprint(tool)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = self._made(tool)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return kept

    def listed(self, text: str) -> tuple[Listed, ...]:
        """The values that a text lists, one a line: `- value: what it is`."""
        text = text[:20_000]
        if text not in self._lists:
            self._lists[text] = tuple(_listed_in(text))
            if len(self._lists) > 200:
                self._lists.popitem(last=False)
        return self._lists[text]

    def _fingerprint(self, tool: Definition) -> bytes:
        # The schema of a tool is the same object from request to request; hashing it is what costs.
        schema = tool.parameters_json_schema
        known = self._by_identity.get(id(schema))
        if known is None or known[0] is not schema:
            digest = blake2b(
                orjson.dumps(schema, option=orjson.OPT_NON_STR_KEYS, default=str), digest_size=16
            ).digest()
            if len(self._by_identity) > _MOST_KEPT:
                self._by_identity.clear()
            known = self._by_identity[id(schema)] = (schema, digest)
        facts = f"{tool.name}\0{tool.description}\0{_annotations(tool)}"
        return blake2b(facts.encode("utf-8", "replace") + known[1], digest_size=16).digest()

    def _made(self, tool: Definition) -> Candidate:
        text = (tool.description or "")[:_MOST_TEXT]
        mark = _MARK.match(text)
        connector = mark.group(1) if mark else ""
        description = text[mark.end() :] if mark else text
        name = _own_name(tool.name, connector)
        parameters = parameters_in(tool.parameters_json_schema)
        # Only the beginning says what a tool is for; the lists that follow are of values.
        said = _LISTED.sub("", description).strip()
        fields = {
            "name": name,
            "description": said,
            "parameters": " ".join(map(_spoken, parameters))[:_MOST_TEXT],
            "connector": connector,
        }
        annotations = _annotations(tool)
        verb, deeds = _doing(name, said, annotations)
        name_words = parts(name)
        return Candidate(
            name=tool.name,
            title=name,
            summary=said.split("\n", 1)[0][:200],
            parameters=parameters,
            deeds=deeds,
            verb=stem(verb) if verb else "",
            is_read_only=annotations.get("read_only") is True,
            weights=_weights(fields),
            meaning=self.words.of(f"{name.replace('_', ' ').replace('-', ' ')} {said}"[:600] or "-"),
            scope=self.words.of(f"{connector} {fields['parameters']}"[:600] or "-"),
            name_stems=frozenset(stem(word) for word in name_words),
            noun_stems=frozenset(
                stem(word) for word in [*name_words, *parts(connector)] if not deeds_of(word)
            ),
            listed=self.listed(description),
            finds_tools=_finds_tools(name_words, parameters),
        )

    def _per_value(self, tool: Candidate, instructions: str) -> list[Candidate]:
        """A tool that passes a request on to one of several listed things: one candidate for each of them."""
        to = next((one for one in tool.parameters if _is_request(one)), None)
        where = next((one for one in tool.parameters if one.required and one is not to), None)
        if to is None or where is None or (not where.takes_text and not where.choices):
            return []
        nouns = tool.noun_stems
        values = fitting(where, tool.listed, nouns) or fitting(where, self.listed(instructions), nouns)
        values = values or tuple(Listed(str(choice), "") for choice in where.choices)
        return [self._for_value(tool, where, value) for value in values]

    def _mentioning(self, tool: Candidate, instructions: str) -> Candidate:
        listed = self.listed(instructions)
        stems = {
            stem(word)
            for one in (tool.parameters if listed else ())
            for value in fitting(one, listed, tool.noun_stems)
            if value.heading
            for word in (value.value, *parts(value.value))
        }
        return replace(tool, mentions=frozenset(stems)) if stems else tool

    def _for_value(self, tool: Candidate, where: Parameter, value: Listed) -> Candidate:
        key = f"{tool.name}\0{where.name}\0{value.value}\0{value.description}".encode("utf-8", "replace")
        kept = self._kept.get(key)
        if kept is None:
            fields = {"name": value.value, "description": value.description}
            kept = replace(
                tool,
                summary=value.description or tool.summary,
                deeds=frozenset[Deed](),
                verb="",
                weights=_weights(fields),
                meaning=self.words.of(
                    f"{value.value.replace('_', ' ').replace('-', ' ')} {value.description}"
                ),
                scope=self.words.of(value.value),
                name_stems=frozenset(stem(word) for word in parts(value.value)),
                given={where.name: value.value},
            )
            self._kept[key] = kept
        return kept


def fitting(
    parameter: Parameter, values: Sequence[Listed], nouns: frozenset[str] = frozenset()
) -> tuple[Listed, ...]:
    """The listed values that can be meant by this parameter: those under a heading that names it, else all.

    A parameter that is called `name` or `id` and no more speaks of what its tool is about: `nouns`.
    """
    core = set(nouns) if set(parameter.words) <= SUFFIXES and nouns else set(parameter.core)
    headed = tuple(one for one in values if core & {stem(word) for word in parts(one.heading)})
    return headed or tuple(one for one in values if not one.heading)


def _spoken(parameter: Parameter) -> str:
    return f"{parameter.name} {parameter.description} {' '.join(map(str, parameter.choices[:50]))}"


def _is_request(parameter: Parameter) -> bool:
    return parameter.takes_text and parameter.required and parameter.name.lower() in REQUEST_NAMES


def _listed_in(text: str) -> Iterable[Listed]:
    headings = [(found.start(), found.group(1) or found.group(2)) for found in _HEADING.finditer(text)]
    for found in _LISTED.finditer(text):
        above = [heading for start, heading in headings if start < found.start()]
        yield Listed(
            found.group(1), found.group(2)[:400], " ".join(above[-1].split()[:_TOPIC]) if above else ""
        )


def _own_name(name: str, connector: str) -> str:
    """Without the prefix that says where it comes from."""
    plain = connector.replace("-", "_").lower()
    for prefix in (f"mcp_{connector}_", f"mcp_{plain}_", f"{connector}__", f"{plain}_"):
        if connector and name.lower().startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def _annotations(tool: Definition) -> dict[str, Any]:
    """`read_only` and `destructive`, in whichever spelling the metadata carries them."""
    metadata = tool.metadata or {}
    inner = metadata.get("annotations")
    found: dict[str, Any] = {}
    for source in (metadata, cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}):
        for fact, spellings in {
            "read_only": ("read_only", "readOnlyHint", "read_only_hint", "readOnly"),
            "destructive": ("destructive", "destructiveHint", "destructive_hint"),
        }.items():
            for spelling in spellings:
                if isinstance(source.get(spelling), bool):
                    found[fact] = source[spelling]
    if inner is not None and not isinstance(inner, dict):
        for fact in ("read_only", "destructive"):
            if isinstance(getattr(inner, fact, None), bool):
                found[fact] = getattr(inner, fact)
    return found


def _doing(name: str, description: str, annotations: Mapping[str, Any]) -> tuple[str, frozenset[Deed]]:
    """The verb of a tool and what it may mean: of its name, and of the first word of its description."""
    in_name = next((word for word in parts(name) if deeds_of(word)), "")
    first = next(iter(parts(description[:40])), "")
    deeds = deeds_of(in_name) | (deeds_of(first) if first else frozenset[Deed]())
    if annotations.get("read_only") is True:
        return in_name or first, frozenset({"read"})
    if annotations.get("read_only") is False and deeds & CHANGES:
        deeds &= CHANGES
    if annotations.get("destructive") is True and not deeds:
        deeds = frozenset[Deed]({"delete"})
    return in_name or (first if deeds_of(first) else ""), deeds


def _finds_tools(name_words: Sequence[str], parameters: Sequence[Parameter]) -> bool:
    searches = {"search", "find", "discover"} & set(name_words)
    about = {"tool", "tools"} & set(name_words)
    return bool(searches and about) and any(one.required and one.takes_text for one in parameters)


def _weights(fields: Mapping[str, str]) -> dict[str, float]:
    """How much each term says of the tool, between 0 and 1: BM25F's, as search over the catalog has them."""
    mentions: dict[str, float] = {}
    for field, weight, usual in _FIELDS:
        found = terms(fields.get(field, ""))
        room = 0.25 + 0.75 * len(found) / usual
        for term, count in Counter(found).items():
            mentions[term] = mentions.get(term, 0.0) + weight * count / room
    return {term: amount / (1.2 + amount) for term, amount in mentions.items()}
