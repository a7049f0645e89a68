"""Typed functions as tools: their schemas, their arguments, their results and their failures."""

import asyncio
import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import anyio
import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

from dragoman.connections.native import FunctionTool
from dragoman.errors import InvalidArguments, InvalidConfig
from dragoman.scope import Caller
from dragoman.tool import Annotations, RawResult
from patience import deadline, patient

if TYPE_CHECKING:
    from decimal import Decimal

pytestmark = pytest.mark.anyio
CALLER = Caller(user="ann")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Person(BaseModel):
    name: str
    age: int | None = None


def same(value: Any) -> Any:
    return value


async def outcome(function: Callable[..., Any], arguments: dict[str, Any] | None = None) -> RawResult:
    return await FunctionTool(function, name="probe").call(arguments or {}, CALLER)


def test_the_schema_comes_from_the_signature() -> None:
    def shout(text: Annotated[str, Field(description="what to say")], times: int = 1) -> str:
        """Say it loudly."""
        return text.upper() * times

    definition = FunctionTool(shout, annotations=Annotations(read_only=True)).definition

    assert definition.original_name == "shout"
    assert definition.description == "Say it loudly."
    assert definition.annotations.read_only is True
    assert definition.output_schema is None
    assert definition.input_schema == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "text": {"description": "what to say", "type": "string"},
                "times": {"default": 1, "type": "integer"},
            },
            "required": ["text"],
            "type": "object",
        }
    )


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def ping() -> str:
        return "pong"

    schema = FunctionTool(ping).definition.input_schema
    assert schema == {"additionalProperties": False, "properties": {}, "type": "object"}


def test_the_output_schema_comes_from_the_return_annotation() -> None:
    def find(name: str) -> list[Person]:
        return [Person(name=name)]

    schema = FunctionTool(find).definition.output_schema
    assert schema is not None
    assert schema["type"] == "array"


def google(a: int, b: str = "") -> None:
    """Do it.

    With care.

    Args:
        a: the first
            and longest
        b (str): the second

    Returns:
        nothing: at all
    """


def numpy(a: int, b: str = "") -> None:
    """Do it.

    With care.

    Parameters
    ----------
    a : int
        the first
        and longest
    b
        the second

    Returns
    -------
    nothing
        at all
    """


def sphinx(a: int, b: str = "") -> None:
    """Do it.

    With care.

    :param int a: the first
        and longest
    :param b: the second
    :returns: nothing
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_docstrings_of_three_styles_describe_the_parameters(function: Callable[..., Any]) -> None:
    definition = FunctionTool(function).definition
    assert definition.description == "Do it.\n\nWith care."
    properties = definition.input_schema["properties"]
    assert {name: value.get("description") for name, value in properties.items()} == {
        "a": "the first and longest",
        "b": "the second",
    }


def test_a_field_description_wins_over_the_docstring() -> None:
    def function(a: Annotated[int, Field(description="from the field")]) -> None:
        """Do it.

        Args:
            a: from the docstring
        """

    properties = FunctionTool(function).definition.input_schema["properties"]
    assert properties["a"]["description"] == "from the field"


async def test_arguments_become_the_annotated_types() -> None:
    seen: dict[str, Any] = {}

    def function(
        point: Point,
        person: Person,
        colour: Colour,
        when: datetime,
        path: Path,
        maybe: Optional[int],  # noqa: UP045
        kind: Literal["a", "b"],
        points: list[Point],
        limit: int = Field(default=7, ge=1),
    ) -> None:
        seen.update(locals())

    answer = await outcome(
        function,
        {
            "point": {"x": 1},
            "person": {"name": "Ann"},
            "colour": "red",
            "when": "2026-01-02T03:04:05Z",
            "path": "a/b",
            "maybe": None,
            "kind": "b",
            "points": [{"x": 1, "y": 2}],
        },
    )

    assert not answer.is_error, answer.content
    assert seen["point"] == Point(1)
    assert seen["person"] == Person(name="Ann")
    assert seen["colour"] is Colour.RED
    assert seen["when"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert seen["path"] == Path("a/b")
    assert seen["maybe"] is None
    assert seen["points"] == [Point(1, 2)]
    assert seen["limit"] == 7


@pytest.mark.parametrize("name", ["schema", "json", "model_config", "_private", "self_", "copy"])
async def test_a_parameter_may_have_any_name(name: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def function({name}: int) -> int: return {name}", space)
    assert (await outcome(space["function"], {name: 3})).structured == 3


@pytest.mark.parametrize("arguments", [{}, {"number": "many"}, {"number": 1, "extra": 2}])
async def test_wrong_arguments_are_refused_and_named(arguments: dict[str, Any]) -> None:
    def function(number: int) -> None: ...

    with pytest.raises(InvalidArguments, match=r"number|extra"):
        await outcome(function, arguments)


async def test_the_caller_is_given_and_is_no_part_of_the_schema() -> None:
    def whoami(caller: Caller, greeting: str = "hello") -> str:
        return f"{greeting} {caller.user}"

    tool = FunctionTool(whoami)
    assert list(tool.definition.input_schema["properties"]) == ["greeting"]
    assert (await tool.call({}, CALLER)).content[0]["text"] == "hello ann"
    with pytest.raises(InvalidArguments):
        await tool.call({"caller": {"user": "eve"}}, CALLER)


async def test_text_is_text_and_everything_else_is_json() -> None:
    assert (await outcome(lambda: "text")).content == ({"type": "text", "text": "text"},)
    assert not (await outcome(lambda: "text")).has_structured
    values: list[tuple[Any, Any]] = [
        ({"a": 1}, {"a": 1}),
        ([1, "b"], [1, "b"]),
        (3.5, 3.5),
        (True, True),
        (None, None),
        (Person(name="Ann"), {"name": "Ann", "age": None}),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Colour.RED, "red"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
    ]
    for value, expected in values:
        answer = await outcome(functools.partial(same, value))
        assert answer.has_structured
        assert answer.structured == expected
        assert answer.content[0]["type"] == "text"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\nrest", "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\0\0\0\0WEBPrest", "image/webp"),
    ],
)
async def test_bytes_of_an_image_are_an_image(data: bytes, kind: str) -> None:
    block = (await outcome(lambda: data)).content[0]
    assert (block["type"], block["mimeType"]) == ("image", kind)


async def test_other_bytes_are_a_resource() -> None:
    block = (await outcome(lambda: b"\0\1\2")).content[0]
    assert block["type"] == "resource"
    assert block["resource"]["blob"] == "AAEC"


async def test_an_exception_is_an_answer_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("no such colour")

    with caplog.at_level(logging.WARNING):
        answer = await outcome(fail)
    assert answer.is_error
    assert answer.content[0]["text"] == "ValueError: no such colour"
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    "error", [SystemExit(3), StopIteration(), asyncio.CancelledError(), ExceptionGroup("g", [ValueError()])]
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_no_exception_of_a_function_escapes(error: BaseException, is_async: bool) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    assert (await outcome(fail_later if is_async else fail)).is_error


async def test_a_result_that_is_no_json_is_a_failure() -> None:
    answer = await outcome(lambda: object())
    assert answer.is_error
    assert "cannot be written as JSON" in answer.content[0]["text"]


async def test_a_sync_function_runs_in_a_thread_and_an_async_one_does_not() -> None:
    async def later() -> str:
        return threading.current_thread().name

    here = threading.current_thread().name
    assert (await outcome(lambda: threading.current_thread().name)).content[0]["text"] != here
    assert (await outcome(later)).content[0]["text"] == here


async def test_a_call_that_is_cancelled_leaves_a_sync_function_behind_at_once() -> None:
    started, release = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait(patient(30))

    async with deadline(10), anyio.create_task_group() as group:
        group.start_soon(outcome, hang)
        await asyncio.to_thread(started.wait, 5)
        group.cancel_scope.cancel()
    release.set()


async def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Adder:
        def add(self, a: int, b: int) -> int:
            return a + b

        async def __call__(self, a: int) -> int:
            return a + 1

    assert (await outcome(Adder().add, {"a": 1, "b": 2})).structured == 3
    assert (await outcome(functools.partial(Adder().add, b=5), {"a": 1})).structured == 6
    assert (await outcome(Adder(), {"a": 1})).structured == 2
    assert FunctionTool(Adder()).definition.original_name == "Adder"


def with_rest(*values: int) -> None: ...
def with_keywords(**values: int) -> None: ...
def with_positional(value: int, /) -> None: ...
def with_missing_type(value: "Decimal") -> None: ...
def with_generator() -> Any:
    yield 1


def with_thread(value: threading.Thread) -> None: ...
def with_callable(value: Callable[[], int]) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        with_rest,
        with_keywords,
        with_positional,
        with_missing_type,
        with_generator,
        with_thread,
        with_callable,
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_added(function: Callable[..., Any]) -> None:
    with pytest.raises(InvalidConfig, match=function.__name__):
        FunctionTool(function)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidConfig) as caught:
        FunctionTool(lambda: 1)
    assert "name=" in (caught.value.hint or "")


def test_a_return_type_without_a_schema_is_no_obstacle() -> None:
    def current() -> threading.Thread: ...  # pyright: ignore[reportReturnType]

    assert FunctionTool(current).definition.output_schema is None
