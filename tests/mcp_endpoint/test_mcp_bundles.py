"""Bundles as MCP clients have them, at an address of their own: each shows its tools and nothing else."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from doors import Door, open_door
from servers.hubs import quick
from servers.library_server import open_library
from servers.processes import stdio

pytestmark = pytest.mark.anyio
FREE: dict[str, Any] = {**stdio(), "approval": "never"}
SAY = {"tool": "box__echo", "name": "say", "parameters": {"text": {"name": "words"}}}
HELLO = {"tool": "box__echo", "name": "greet", "parameters": {"text": {"value": "hello from the bundle"}}}
TWO = "/mcp/bundles/speaking", "/mcp/bundles/greeting"


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@asynccontextmanager
async def two_bundles(tmp_path: Path) -> AsyncGenerator[Door]:
    """Two bundles over one connector, and the prompts of another in the second of them."""
    async with open_library() as library, open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        await door.hub.connectors.add("books", **quick(url=library.url, transport="http"))
        await door.hub.bundles.create("speaking", [SAY, "box__add"], instructions="Speak up.")
        await door.hub.bundles.create("greeting", [HELLO], view="search", resources=["books"])
        yield door


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_two_clients_with_two_bundles_over_one_connector_see_each_its_own(
    tmp_path: Path, mode: str
) -> None:
    async with (
        two_bundles(tmp_path) as door,
        door.client(TWO[0], mode=mode) as speaker,
        door.client(TWO[1], mode=mode) as greeter,
    ):
        tools = {tool.name: tool for tool in (await speaker.list_tools()).tools}
        assert {*tools} == {"say", "mcp_box_add"}
        assert {*tools["say"].input_schema["properties"]} == {"words"}
        assert text_of(await speaker.call_tool("say", {"words": "hi"})) == "hi"
        names = [tool.name for tool in (await greeter.list_tools()).tools]
        assert "query_mcp_connector" not in names
        assert names[:2] == ["search_tools", "call_tool"]
        found = json.loads(text_of(await greeter.call_tool("search_tools", {"query": "echo"})))
        assert (found["found"], [one["name"] for one in found["tools"]]) == ("1 of 1", ["greet"])
        assert "hello" not in json.dumps(found)
        said = await greeter.call_tool("call_tool", {"name": "greet"})
        assert text_of(said) == "[hidden]", "the server says what is fixed; the bundle does not"
        # Code names what its bundle shows, as functions of a group called like the bundle.
        ran = await greeter.call_tool("run_code", {"code": "return await greeting.greet()"})
        assert json.loads(text_of(ran))["result"] == "[hidden]"
        for word in ("box.echo(text='x')", "greeting.say(words='x')", "call_tool('mcp_box_echo', text='x')"):
            ran = await greeter.call_tool("run_code", {"code": f"return await {word}"})
            assert ran.is_error
        # Prompts and resources: those that the bundle has.
        assert (await speaker.list_resources()).resources == []
        assert [one.name for one in (await greeter.list_prompts()).prompts] == ["books__review"]
        prompt: Any = await greeter.get_prompt("books__review", {"topic": "tea"})
        assert prompt.messages[0].content.text == "Write about tea."


async def test_no_way_leads_out_of_a_bundle(tmp_path: Path) -> None:
    async with two_bundles(tmp_path) as door:
        for path in TWO:
            for name in ("mcp_box_echo", "box__echo", "mcp_box_send", "echo", "nothing"):
                reply = await door.ask("tools/call", {"name": name, "arguments": {"text": "x"}}, path)
                assert reply.value["error"]["code"] == -32602
        for name, arguments in (
            ("call_tool", {"name": "mcp_box_echo", "arguments": {"text": "x"}}),
            ("search_tools", {"query": "echo", "connector": "box"}),
            ("query_mcp_connector", {"connector_id": "box", "query": "echo x"}),
        ):
            reply = await door.ask("tools/call", {"name": name, "arguments": arguments}, TWO[1])
            assert reply.value["result"]["isError"] is True, reply.value
        # The tool itself would take any argument: what its bundle hides or renames it does not.
        greet = {"name": "greet", "arguments": {"text": "other words"}}
        for path, called in (
            (TWO[0], {"name": "say", "arguments": {"words": "x", "text": "y"}}),
            (TWO[1], {"name": "call_tool", "arguments": greet}),
        ):
            result = (await door.ask("tools/call", called, path)).value["result"]
            assert (result["isError"], "no parameter 'text'" in str(result["content"])) == (True, True)
        refused = {"uri": "books+book:///one"}, {"name": "books__review", "arguments": {"topic": "x"}}
        assert "error" in (await door.ask("resources/read", refused[0], TWO[0])).value
        assert "error" in (await door.ask("prompts/get", refused[1], TWO[0])).value
        assert (await door.ask("tools/list", path="/mcp/bundles/nothing")).value["error"]["code"] == -32602
        assert (await door.ask("tools/list", path="/mcp/bundles/a/b")).status == 404


async def test_a_client_hears_that_its_bundle_changed_and_reads_its_instructions(tmp_path: Path) -> None:
    async with two_bundles(tmp_path) as door:
        told = (await door.ask("server/discover", path=TWO[0])).value["result"]
        assert told["instructions"] == "Speak up."
        session = await door.open(TWO[0])
        async with session.listening() as news:
            await door.hub.bundles.override("speaking", "say", name="speak")
            assert (await news.next())["method"] == "notifications/tools/list_changed"
        names = [one["name"] for one in (await session.ask("tools/list")).value["result"]["tools"]]
        assert names == ["mcp_box_add", "speak"]
        await door.hub.connectors.remove("box")
        problems = (await door.hub.bundles.get("speaking")).problems
        assert problems[0] == "box__echo: the connector 'box' is not there"
        reply = await door.ask("tools/call", {"name": "speak", "arguments": {"words": "x"}}, TWO[0])
        assert "the connector 'box' is not there" in str(reply.value)
        await door.hub.bundles.remove("speaking")
        assert (await door.ask("tools/list", path=TWO[0])).value["error"]["code"] == -32602
