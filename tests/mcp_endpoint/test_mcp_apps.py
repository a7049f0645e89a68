"""What passes through beside tools and results: `_meta`, pages of apps, extensions, the client's trace."""

from pathlib import Path
from typing import Any

import pytest

from doors import META, Door, open_door
from servers.app_server import UI, AppServer, open_app_server

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def with_clock(door: Door, server: AppServer) -> None:
    await door.hub.connectors.add("clock", url=server.url, approval="never")


@ERAS
@pytest.mark.parametrize(
    ("path", "name", "page"),
    [
        ("/mcp", "mcp_clock_now", "ui://clock+clock/app.html"),
        ("/mcp/clock", "now", "ui://clock/app.html"),
    ],
)
async def test_the_page_of_a_tool_is_listed_and_read_by_the_address_that_the_tool_names(
    tmp_path: Path, mode: str, path: str, name: str, page: str
) -> None:
    async with open_app_server() as server, open_door(tmp_path) as door:
        await with_clock(door, server)
        async with door.client(path, mode=mode) as client:
            tool = next(one for one in (await client.list_tools()).tools if one.name == name)
            assert tool.meta is not None
            assert tool.meta["ui"] == {"resourceUri": page, "visibility": ["app"]}
            assert tool.meta["ui/resourceUri"] == page
            assert tool.meta["com.example/kept"] == {"a": 1}
            assert page in [str(one.uri) for one in (await client.list_resources()).resources]
            read: Any = await client.read_resource(page)
            assert (str(read.contents[0].uri), read.contents[0].text) == (page, "<p>clock</p>")
            result = await client.call_tool(name, {})
            assert result.meta is not None
            assert result.meta["ui"] == {"resourceUri": page}
            assert result.meta["com.example/kept"] == {"a": 1}
            for meta in (tool.meta, result.meta):
                assert "dragoman/error" not in meta, "no server speaks in Dragoman's name"


async def test_what_a_client_says_beside_its_call_reaches_the_server_and_nothing_forged_does(
    tmp_path: Path,
) -> None:
    said = {"com.example/session": "7", "dragoman/role": "operator", "io.modelcontextprotocol/odd": 1}
    async with open_app_server() as server, open_door(tmp_path) as door:
        await with_clock(door, server)
        meta = {**META, **said, "traceparent": TRACE, "tracestate": "a=b"}
        reply = await door.ask("tools/call", {"name": "mcp_clock_now"}, meta=meta)
        assert reply.status == 200, reply.body
        heard, headers = server.heard[-1]
        assert heard["com.example/session"] == "7"
        assert not {"dragoman/role", "io.modelcontextprotocol/odd"} & heard.keys()
        assert heard["io.modelcontextprotocol/clientInfo"]["name"] == "dragoman"
        trace = TRACE.split("-")[1]
        assert (heard["traceparent"].split("-")[1], heard["tracestate"]) == (trace, "a=b")
        assert headers["traceparent"].split("-")[1] == trace


async def test_an_extension_is_told_on_where_both_sides_have_it(tmp_path: Path) -> None:
    async with open_app_server() as server, open_door(tmp_path) as door:
        found = (await door.ask("server/discover")).value["result"]["capabilities"]
        assert UI not in found["extensions"]
        await with_clock(door, server)
        found = (await door.ask("server/discover")).value["result"]["capabilities"]
        assert UI in found["extensions"]
        for declared, told in (
            ({}, {}),
            (
                {"extensions": {UI: {"mimeTypes": ["text/html"]}, "com.example/odd": {}}},
                {"mimeTypes": ["text/html"]},
            ),
        ):
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": declared}
            await door.ask("tools/call", {"name": "mcp_clock_now"}, meta=meta)
            heard = server.heard[-1][0]["io.modelcontextprotocol/clientCapabilities"]
            assert heard == ({"extensions": {UI: told}} if told else {})
