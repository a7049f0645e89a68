"""What a scripted model says: rules that look at a request and answer it. Knows no provider's protocol.

A scenario is a YAML or JSON file, `rules:` with a list of `{when: {…}, reply: {…}}`. The first rule whose
conditions all hold answers; a rule with `times: n` answers only n times.

`when`, all optional: `last_user_contains`, `last_user_matches` (a regular expression whose groups the reply
can use), `last_tool_result_contains`, `tools_include` (a name or a list), `system_contains`, `turn` (1 is the
first request after a person spoke; each reply of the model adds one).

`reply`: `text`, or `tool_calls: [{name, arguments}]`, or both; and how it goes wrong: `delay` (seconds),
`status` (with `retry_after`), `garbage`, `cut` (the connection ends in the middle), `unfinished` (the stream
ends there as if it were whole), `stall` (it stops there for so many seconds), `context_too_long`,
`content_filter`, `too_long` (the answer is as long as it may be).

Text and arguments take values from the conversation: `{{result.search.items.0.id}}` from the last result of
the tool `search`, `{{results.0.id}}` from the first result since a person spoke, `{{user}}`, `{{match.1}}`.
A path has keys and numbers (-1 is the last) and `**` for any depth. After `~` comes a regular expression for
text: `{{result.read ~ id (\\w+)}}`. A string that is one template keeps the value's type.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1] / "scenarios"
_TEMPLATE = re.compile(r"\{\{\s*(.+?)\s*\}\}")


@dataclass(frozen=True)
class Result:
    """What a tool gave: parsed where it is JSON. `sources` are the names by which it can be cited.

    `raw` is all that the model was told of it.
    """

    tool: str
    call_id: str
    value: Any
    raw: Any = None
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, tool: str, call_id: str, content: str) -> "Result":
        value = parsed(content)
        if not isinstance(value, dict) or "result" not in value or not value.keys() & {"source", "sources"}:
            return cls(tool, call_id, value, value)
        sources = tuple(one["id"] for one in value.get("sources", ())) or (value["source"],)
        return cls(tool, call_id, value["result"], value, sources)


@dataclass(frozen=True)
class Turn:
    """One request to the model, in no provider's words.

    `results` are all; `recent` those since a person spoke; `fresh` those that answer the model's last reply.
    """

    system: str
    user: str
    tools: tuple[str, ...]
    results: tuple[Result, ...]
    recent: tuple[Result, ...]
    fresh: tuple[Result, ...]
    number: int
    request: dict[str, Any] = field(repr=False)

    def result(self, tool: str) -> Any:
        """The last result of this tool, or KeyError."""
        for found in reversed(self.results):
            if found.tool == tool:
                return found.value
        raise KeyError(
            f"the tool {tool} has given nothing; there is {[found.tool for found in self.results]}"
        )


@dataclass(frozen=True)
class Call:
    """`id` comes back with the result; without one the wire makes one up."""

    name: str
    arguments: dict[str, Any]
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    text: str | None = None
    tool_calls: tuple[Call, ...] = ()
    delay: float = 0.0
    status: int | None = None
    retry_after: float | None = None
    garbage: bool = False
    cut: bool = False
    unfinished: bool = False
    stall: float = 0.0
    context_too_long: bool = False
    content_filter: bool = False
    too_long: bool = False


Script = Callable[[Turn], Reply | Awaitable[Reply]]


@dataclass(frozen=True)
class Rule:
    when: dict[str, Any]
    reply: dict[str, Any]
    times: int | None = None

    def find_match(self, turn: Turn) -> tuple[str, ...] | None:
        """The groups of its regular expression when all its conditions hold, else None."""
        groups: tuple[str, ...] = ()
        for condition, wanted in self.when.items():
            if condition == "last_user_matches":
                found = re.search(wanted, turn.user)
                groups = (found.group(0), *(group or "" for group in found.groups())) if found else ()
            if not self._holds(condition, wanted, turn):
                return None
        return groups

    def _holds(self, condition: str, wanted: Any, turn: Turn) -> bool:
        match condition:
            case "last_user_contains":
                return wanted.lower() in turn.user.lower()
            case "last_user_matches":
                return re.search(wanted, turn.user) is not None
            case "last_tool_result_contains":
                return any(wanted.lower() in as_text(result.value).lower() for result in turn.fresh)
            case "tools_include":
                return set([wanted] if isinstance(wanted, str) else wanted) <= set(turn.tools)
            case "system_contains":
                return wanted.lower() in turn.system.lower()
            case "turn":
                return turn.number == wanted
            case _:
                raise ValueError(f"a scenario knows no condition {condition!r}")


class Scenario:
    """Rules in their order. What a request holds decides: it keeps no conversation, and survives restarts."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._used = [0] * len(rules)

    @classmethod
    def load(cls, name: str | Path) -> "Scenario":
        """By path, or by the name of a file in tests/scenarios without its ending."""
        path = name if isinstance(name, Path) else FOLDER / f"{name}.yaml"
        return cls.of(yaml.safe_load(path.read_text())["rules"])

    @classmethod
    def of(cls, rules: list[dict[str, Any]]) -> "Scenario":
        for rule in rules:
            if unknown := rule.keys() - {"when", "reply", "times"}:
                raise ValueError(f"a rule knows no {unknown}")
        return cls([Rule(rule.get("when") or {}, rule["reply"], rule.get("times")) for rule in rules])

    def __call__(self, turn: Turn) -> Reply:
        for at, rule in enumerate(self._rules):
            if rule.times is not None and self._used[at] >= rule.times:
                continue
            if (groups := rule.find_match(turn)) is not None:
                self._used[at] += 1
                return filled(rule.reply, turn, groups)
        raise LookupError(f"no rule for turn {turn.number} of {turn.user!r} with tools {turn.tools}")


def filled(reply: dict[str, Any], turn: Turn, groups: tuple[str, ...] = ()) -> Reply:
    """The reply with all its templates replaced."""
    parts = dict(reply)
    calls = [
        Call(call["name"], fill(call.get("arguments", {}), turn, groups))
        for call in parts.pop("tool_calls", [])
    ]
    text = parts.pop("text", None)
    said = None if text is None else as_text(fill(text, turn, groups))
    return replace(Reply(**parts), text=said, tool_calls=tuple(calls))


def fill(value: Any, turn: Turn, groups: tuple[str, ...] = ()) -> Any:
    if isinstance(value, dict):
        return {key: fill(part, turn, groups) for key, part in value.items()}
    if isinstance(value, list):
        return [fill(part, turn, groups) for part in value]
    if not isinstance(value, str):
        return value
    if (whole := _TEMPLATE.fullmatch(value)) and "{{" not in whole.group(1):
        return _taken(whole.group(1), turn, groups)
    return _TEMPLATE.sub(lambda found: as_text(_taken(found.group(1), turn, groups)), value)


def _taken(expression: str, turn: Turn, groups: tuple[str, ...]) -> Any:
    path, _, pattern = (part.strip() for part in expression.partition("~"))
    steps = path.split(".")
    match steps:
        case ["user"]:
            value: Any = turn.user
        case ["match", number]:
            value = groups[int(number)]
        case ["result", tool, *rest]:
            value = follow(turn.result(tool), rest)
        case ["results", number, *rest]:
            value = follow(turn.recent[int(number)].value, rest)
        case _:
            raise LookupError(f"a template knows no {expression!r}")
    if not pattern:
        return value
    found = re.search(pattern, as_text(value))
    if found is None:
        raise LookupError(f"{pattern!r} is not in {as_text(value)[:500]!r}")
    return found.group(1) if found.groups() else found.group(0)


def follow(value: Any, steps: list[str]) -> Any:
    """What is at the end of a path. JSON inside of a string is opened on the way."""
    if not steps:
        return value
    value = parsed(value) if isinstance(value, str) else value
    step, rest = steps[0], steps[1:]
    if step == "**":
        for candidate in (value, *_children(value)):
            for ahead in (rest, steps) if candidate is not value else (rest,):
                try:
                    return follow(candidate, ahead)
                except LookupError:
                    continue
        raise LookupError(f"nothing at {'.'.join(steps)}")
    if isinstance(value, list) and re.fullmatch(r"-?\d+", step):
        return follow(value[int(step)], rest)
    if isinstance(value, dict) and step in value:
        return follow(value[step], rest)
    raise LookupError(f"nothing at {'.'.join(steps)} in {as_text(value)[:500]}")


def _children(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = parsed(value)
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


_FENCE = re.compile(r"<data (\w+)>\n(.*)\n</data \1>", re.DOTALL)


def unfenced(text: str) -> str:
    """As a model understands it: without the fence around what came from elsewhere."""
    fence = _FENCE.fullmatch(text)
    return fence[2] if fence else text


def parsed(text: str) -> Any:
    text = unfenced(text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
