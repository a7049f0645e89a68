"""What a client sees and calls through the MCP door, with the SDK's own client in both eras."""

import json
from pathlib import Path
from typing import Any

import pytest

from doors import numbered, open_door
from dragoman.scope import Caller
from dragoman.tool import Annotations
from servers.processes import stdio

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
FREE: dict[str, Any] = {**stdio(), "approval": "never"}
READ_ONLY = Annotations(read_only=True)


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@ERAS
async def test_all_tools_are_listed_and_called_under_their_dragoman_names(tmp_path: Path, mode: str) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        async with door.client(mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            echo = tools["mcp_box_echo"]
            assert (echo.description or "").startswith("[MCP:box]")
            assert echo.annotations is not None
            assert echo.annotations.read_only_hint is True
            assert echo.input_schema["required"] == ["text"]
            result = await client.call_tool("mcp_box_echo", {"text": "caffè"})
            assert (text_of(result), result.is_error) == ("caffè", False)


@ERAS
async def test_one_connector_alone_keeps_its_own_names(tmp_path: Path, mode: str) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        await door.hub.connectors.add("other", **FREE)
        async with door.client("/mcp/box", mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "echo" in names
            assert not any(name.startswith("mcp_") for name in names)
            assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
        assert (await door.ask("tools/list", path="/mcp/nothing")).value["error"]["code"] == -32602
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25"},
        }
        assert (await door.send("POST", "/mcp/nothing", body)).status == 404


@ERAS
async def test_the_search_view_leads_to_every_tool(tmp_path: Path, mode: str) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        async with door.client("/mcp?view=search", mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[:2] == ["search_tools", "call_tool"]
            found = json.loads(text_of(await client.call_tool("search_tools", {"query": "mcp_box_echo"})))
            assert found["found"].endswith(" of 34")
            assert found["tools"][0]["name"] == "mcp_box_echo"
            assert found["tools"][0]["inputSchema"]["required"] == ["text"]
            arguments = {"name": "mcp_box_echo", "arguments": {"text": "hi"}}
            assert text_of(await client.call_tool("call_tool", arguments)) == "hi"
            wrong = await client.call_tool("call_tool", {"name": "mcp_box_ecko"})
            assert wrong.is_error
            assert "mcp_box_echo" in text_of(wrong)
            for bad in (
                {},
                {"query": 5},
                {"query": ""},
                {"query": "x", "limit": "many"},
                {"query": "x" * 100_000},
            ):
                assert "invalid_arguments" in text_of(await client.call_tool("search_tools", bad))


async def test_the_number_of_tokens_decides_where_the_address_does_not(tmp_path: Path) -> None:
    def say(text: str) -> str:
        return text

    async with open_door(tmp_path, tool_budget=500) as door:

        async def names(path: str) -> list[str]:
            reply = await door.ask("tools/list", path=path)
            return [tool["name"] for tool in reply.value["result"]["tools"]]

        door.hub.add_tool(say, name="first", description="says it again", annotations=READ_ONLY)
        assert await names("/mcp") == ["first"]
        for name in numbered(20):
            door.hub.add_tool(say, name=name, description="says it again")
        assert (await names("/mcp"))[:2] == ["search_tools", "call_tool"]
        assert len(await names("/mcp?view=tools")) == 21
        # Who listed before it changed may go on calling what it knows.
        reply = await door.ask("tools/call", {"name": "first", "arguments": {"text": "hi"}})
        assert reply.value["result"]["content"][0]["text"] == "hi"
        assert (await door.ask("tools/list", path="/mcp?view=odd")).status == 404


@ERAS
async def test_structures_pictures_and_failures_pass_through(tmp_path: Path, mode: str) -> None:
    async with open_door(tmp_path) as door:
        hub = door.hub
        await hub.connectors.add("box", **FREE)

        @hub.tool(annotations=READ_ONLY)
        def rows() -> list[int]:
            """A list is wrapped, for MCP knows only objects."""
            return [1, 2]

        @hub.tool(annotations=READ_ONLY)
        def fact() -> dict[str, int]:
            """An object stays as it is."""
            return {"size": 3}

        async with door.client(mode=mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert (listed["rows"].output_schema or {})["properties"]["result"]["type"] == "array"
            assert (await client.call_tool("rows", {})).structured_content == {"result": [1, 2]}
            assert (await client.call_tool("fact", {})).structured_content == {"size": 3}
            failed = await client.call_tool("mcp_box_fail", {"text": "no milk"})
            assert failed.is_error
            assert "no milk" in text_of(failed)
            wrong = await client.call_tool("mcp_box_echo", {"text": 5})
            assert wrong.is_error
            assert text_of(wrong).startswith("invalid_arguments: ")
            assert "hint: " in text_of(wrong)


async def test_an_unknown_tool_is_an_error_of_the_protocol_with_a_hint(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        error = (await door.ask("tools/call", {"name": "mcp_box_ecko", "arguments": {}})).value["error"]
        assert error["code"] == -32602
        assert "mcp_box_echo" in error["message"]
        error = (await door.ask("tools/call", {"name": "ecko", "arguments": {}}, "/mcp/box")).value["error"]
        assert error == {"code": -32602, "message": "Unknown tool: 'ecko' (did you mean 'echo'?)"}


async def test_a_result_that_was_cut_is_read_whole_as_a_resource(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE, max_result_bytes=2000)
        async with door.client() as client:
            text = text_of(await client.call_tool("mcp_box_big", {"bytes": 5000}))
            assert "[cut here: 2,000 of 5,000 bytes" in text
            uri = text[text.index("dragoman://results/") :].partition("]")[0]
            whole: Any = (await client.read_resource(uri)).contents[0]
            assert len(whole.text) == 5000
        reply = await door.ask("resources/read", {"uri": "dragoman://results/nothing"})
        assert (reply.status, reply.value["error"]["code"]) == (400, -32602)


async def test_what_a_caller_may_not_see_or_call_is_not_there(tmp_path: Path) -> None:
    callers = {
        "eve": Caller(user="eve", grants=(frozenset({"mcp_box_echo"}),)),
        "bob": Caller(user="bob", grants=(frozenset({"mcp_integration"}),)),
    }
    async with open_door(tmp_path, callers=callers) as door:
        await door.hub.connectors.add("box", **FREE, shared=True)
        await door.hub.tools.disable("mcp_box_sleep")

        async def names(who: str) -> list[str]:
            reply = await door.ask("tools/list", x_test_caller=who)
            return [tool["name"] for tool in reply.value["result"]["tools"]]

        assert await names("eve") == ["mcp_box_echo"]
        bobs = await names("bob")
        assert "mcp_box_add" in bobs
        assert "mcp_box_sleep" not in bobs
        call = {"name": "mcp_box_add", "arguments": {"a": 1, "b": 2}}
        assert (await door.ask("tools/call", call, x_test_caller="eve")).value["error"]["code"] == -32602
        assert "isError" not in (await door.ask("tools/call", call, x_test_caller="bob")).value["result"]


async def test_calls_by_this_door_go_down_the_road_by_way_of_mcp(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        await door.hub.tools.configure("mcp_box_echo", allowed_callers=["direct"])
        async with door.client() as client:
            assert "mcp_box_echo" not in {tool.name for tool in (await client.list_tools()).tools}
            refused = await client.call_tool("mcp_box_echo", {"text": "hi"})
            assert "denied: " in text_of(refused)


async def test_what_may_change_something_waits_for_a_person(tmp_path: Path) -> None:
    async with open_door(tmp_path, approval_wait=0.2) as door:
        await door.hub.connectors.add("box", **stdio())
        async with door.client() as client:
            pending = await client.call_tool("mcp_box_add", {"a": 1, "b": 2})
            assert pending.is_error
            assert text_of(pending).startswith("approval_pending: ")
            assert (await client.call_tool("mcp_box_echo", {"text": "hi"})).is_error is False
