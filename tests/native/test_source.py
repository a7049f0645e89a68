"""The registry of native tools: names, conflicts, and tool classes of one's own."""

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.connections.native import NativeTools
from dragoman.errors import Conflict, InvalidName, NotFound
from dragoman.scope import Caller
from dragoman.tool import Annotations, RawResult, ToolDefinition

pytestmark = pytest.mark.anyio
CALLER = Caller()


class Counter:
    """A tool with a state of its own."""

    definition = ToolDefinition(original_name="count", description="Counts.")

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, arguments: Mapping[str, Any], caller: Caller) -> RawResult:
        self.calls += 1
        return RawResult(structured=self.calls, has_structured=True)


def greet(name: str) -> str:
    """Greets."""
    return f"hello {name}"


async def test_a_function_is_added_called_and_removed() -> None:
    tools = NativeTools()
    tools.add(greet)
    assert [definition.original_name for definition in tools.definitions()] == ["greet"]
    assert (await tools.call("greet", {"name": "Ann"}, CALLER)).content[0]["text"] == "hello Ann"
    tools.remove("greet")
    assert tools.definitions() == ()


async def test_a_tool_class_of_ones_own_needs_only_a_definition_and_a_call() -> None:
    tools = NativeTools()
    tools.add(Counter())
    await tools.call("count", {}, CALLER)
    assert (await tools.call("count", {}, CALLER)).structured == 2


async def test_a_tool_may_be_added_under_another_name() -> None:
    tools = NativeTools()
    tools.add(Counter(), name="tally", description="Tallies.", annotations=Annotations(read_only=True))
    tools.add(greet, name="say-hello", description="Says hello.")
    hello, tally = tools.definitions()
    assert (hello.original_name, hello.description) == ("say-hello", "Says hello.")
    assert (tally.original_name, tally.description, tally.annotations.read_only) == (
        "tally",
        "Tallies.",
        True,
    )
    assert (await tools.call("tally", {}, CALLER)).structured == 1


def test_a_name_is_taken_once() -> None:
    tools = NativeTools()
    tools.add(greet)
    with pytest.raises(Conflict) as caught:
        tools.add(greet)
    assert "name=" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", "a b", "ä", "a.b", "x" * 65, "mcp_time_now", "a\n"])
def test_illegal_names_are_refused_with_a_hint(name: str) -> None:
    tools = NativeTools()
    with pytest.raises(InvalidName) as caught:
        tools.add(Counter(), name=name)
    assert caught.value.hint
    assert tools.definitions() == ()


async def test_an_unknown_tool_is_not_found_with_a_hint() -> None:
    tools = NativeTools()
    tools.add(greet)
    with pytest.raises(NotFound) as caught:
        await tools.call("great", {}, CALLER)
    assert caught.value.hint == "did you mean 'greet'?"
    with pytest.raises(NotFound):
        tools.remove("great")
