"""What a run's journal has for a recipe: what was asked, and the tools that were called, turn by turn.

Of arguments only names and types are taken, of results and of what the model said nothing. In the question
values of arguments, addresses and secrets give way to a word such as `<to>`. Imported by the first who wants
one: reading a journal needs pydantic-ai.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai.messages import ModelResponse

from dragoman.recipe import LONGEST_QUESTION
from dragoman.run import Run, Step
from dragoman.runs.journal_record import JournalRecord
from dragoman.secret_recognition import masked
from dragoman.tool import Tool

_MOST_STEPS = 20
_SHORTEST_VALUE = 3  # characters; a shorter one is found in ordinary words
_MENTION = re.compile(r"^\s*@[\w-]+[,:]?\s+")  # whose job it is, the recipe says itself
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[a-z][a-z0-9+.-]*://\S+|\bwww\.\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d[\d ./-]{2,}\d\b")
_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class RecipeDraft:
    """`tools` in the order in which they were first called."""

    question: str
    text: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Made:
    """A call that worked."""

    tool: Tool
    arguments: Mapping[str, Any]

    @property
    def shape(self) -> str:
        """`send(to: string, text: string)`. A name that the tool's schema does not have may be a value."""
        listed = (
            f"{name}: {_type_of(schema, self.arguments[name])}"
            for name, schema in _properties(self.tool).items()
            if name in self.arguments
        )
        return f"{self.tool.name}({', '.join(listed)})"


def draft_of(
    run: Run, steps: Sequence[Step], tools: Mapping[str, Tool], clean: Callable[[str], str]
) -> RecipeDraft | None:
    """None where no call of these `tools` worked. `clean` takes known secrets out."""
    turns = [*_turns(JournalRecord.of(steps), tools)][:_MOST_STEPS]
    if not turns:
        return None
    made = [call for calls in turns for call in calls]
    lines = [f"{number}. {_line(calls)}" for number, calls in enumerate(turns, 1)]
    return RecipeDraft(
        question=_without_values(masked(clean(_MENTION.sub("", run.request))), made)[:LONGEST_QUESTION],
        text="\n".join(lines),
        tools=tuple(dict.fromkeys(call.tool.name for call in made)),
    )


def _turns(record: JournalRecord, tools: Mapping[str, Tool]) -> Iterator[list[_Made]]:
    """What was called in one step of the model, for each that called something with success."""
    turn = 0
    for message in record.messages:
        if not isinstance(message, ModelResponse):
            continue
        turn += 1
        calls = [
            _Made(tools[call.tool_name], _table(call.args_as_dict()))
            for call in message.tool_calls
            if call.tool_name in tools
            and (told := record.finished.get(f"t{turn}:{call.tool_call_id}")) is not None
            and told.ok
        ]
        if calls:
            yield calls


def _line(calls: Sequence[_Made]) -> str:
    shapes = [call.shape for call in calls]
    counted = [
        f"{shape} {count} times" if (count := shapes.count(shape)) > 1 else shape
        for shape in dict.fromkeys(shapes)
    ]
    return " and ".join(counted) + (", in one step" if len(calls) > 1 else "")


def _without_values(text: str, made: Sequence[_Made]) -> str:
    values = {value: name for call in made for name, value in _values_of(call)}
    for value in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"<{values[value]}>", text, flags=re.IGNORECASE)
    return _NUMBER.sub("<number>", _ADDRESS.sub("<address>", text))


def _values_of(call: _Made) -> Iterator[tuple[str, str]]:
    """Every text and number in the arguments, with the argument's name; a choice of the schema is none."""
    for name, schema in _properties(call.tool).items():
        choices = _table(schema).get("enum") or ()
        for value in _words_in(call.arguments.get(name)):
            if len(value) >= _SHORTEST_VALUE and value not in choices:
                yield name, value


def _words_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (word for one in cast("dict[str, Any]", value).values() for word in _words_in(one))
    elif isinstance(value, list):
        yield from (word for one in cast("list[Any]", value) for word in _words_in(one))
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value).strip()


def _type_of(schema: Any, value: Any) -> str:
    said = _table(schema).get("type")
    return said if isinstance(said, str) else _TYPES.get(type(cast("object", value)), "any")


def _properties(tool: Tool) -> Mapping[str, Any]:
    return _table(tool.definition.input_schema.get("properties"))


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
