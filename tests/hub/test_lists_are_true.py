"""Lists say what can be reached, and a call of a connector that was never listed lists it first."""

import sys
from pathlib import Path
from typing import Any

import pytest

from api.live import open_service
from dragoman import Hub
from servers.hubs import open_hub, quick, state_is, until
from servers.processes import HttpProcess, stdio

pytestmark = pytest.mark.anyio
SOON = {"reconnect": {"delay": 0.1, "cap": 0.1}}


def described(hub: Hub, name: str) -> tuple[str, str | None]:
    info = hub.tools.info(name)
    return info.state, info.cause


# Never listed


async def test_a_call_of_a_connector_that_was_never_listed_lists_it_first(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **quick(), connect=False)
        assert hub.tools.list("a") == []
        assert (await hub.call("mcp_a_echo", {"text": "hi"})).result == "hi"
        await hub.connectors.add("b", **stdio(), **quick(), connect=False)
        assert (await hub.call("b__echo", {"text": "hi"})).result == "hi"
        await hub.connectors.add("c", **stdio(), **quick(), connect=False)
        missing = await hub.call("mcp_c_eccho", {})
        assert missing.error is not None
        assert missing.error.code == "not_found"
        assert "mcp_c_echo" in (missing.error.hint or "")


async def test_what_keeps_a_first_list_away_is_the_answer_and_never_not_found(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        gone = stdio("--exit-at-start", "3", "--stderr", "no such database")
        await hub.connectors.add("gone", **gone, **quick(retry={"tries": 1}), connect=False)
        await hub.connectors.add("own", **stdio(), **quick(), personal=["env:TOKEN"], connect=False)
        lost = await hub.call("mcp_gone_echo", {"text": "hi"})
        assert lost.error is not None
        assert lost.error.code == "unreachable", lost.error
        assert "no such database" in lost.error.message
        needs = await hub.call("mcp_own_echo", {"text": "hi"})
        assert needs.error is not None
        assert needs.error.code == "needs_auth", needs.error
        await hub.connectors.disable("own")
        off = await hub.call("mcp_own_echo", {"text": "hi"})
        assert off.error is not None
        assert off.error.code == "not_found"


async def test_rest_shows_a_tool_of_a_connector_that_was_never_listed(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("a", **stdio(), **quick(), connect=False)
        shown = await live.ask("GET", "/api/tools/mcp_a_echo")
        assert (shown.status, shown.value["state"]) == (200, "ready")


# How often

COUNTING = """
import json, pathlib, sys
log = pathlib.Path(sys.argv[1])
tool = {"name": "echo", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"result": {}}
    if asked["method"] == "initialize":
        answer["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "counting", "version": "1"},
        }
    elif asked["method"] == "tools/list":
        with log.open("a") as file:
            file.write("listed ")
        is_first = log.read_text().count("listed") == 1
        fails = is_first and sys.argv[2] == "fails"
        answer = {"error": {"code": -32603, "message": "not yet"}} if fails else {"result": {"tools": [tool]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


async def test_a_connection_that_opens_to_be_listed_is_listed_once(tmp_path: Path) -> None:
    program, log = tmp_path / "counting.py", tmp_path / "log"
    program.write_text(COUNTING)
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add(
            "a", command=sys.executable, args=[str(program), str(log), "lists"], **quick()
        )
        assert [tool.name for tool in hub.tools.list("a")] == ["mcp_a_echo"]
        # What had begun by itself meanwhile would have asked before this, over the same connection.
        await hub.connectors.refresh("a")
        assert log.read_text().count("listed") == 2


async def test_where_the_first_list_fails_the_connection_that_opened_for_it_is_listed_again(
    tmp_path: Path,
) -> None:
    program, log = tmp_path / "counting.py", tmp_path / "log"
    program.write_text(COUNTING)
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add(
            "a", command=sys.executable, args=[str(program), str(log), "fails"], **quick()
        )

        async def is_there() -> bool:
            return bool(hub.tools.list("a"))

        await until(is_there)


# Out of reach


async def test_the_tools_of_a_dead_server_are_unavailable_and_come_back(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server:
        async with open_service(tmp_path / "home") as live:
            hub = live.hub
            await hub.connectors.add("a", url=server.url, **quick(health_interval=0.2, **SOON))
            assert described(hub, "mcp_a_echo") == ("ready", None)
            version = hub.catalog_version
            server.kill()
            await state_is(hub, "a", "error")
            state, cause = described(hub, "mcp_a_echo")
            assert state == "unavailable"
            assert "cannot connect" in (cause or "")
            assert hub.catalog_version > version, "what is derived of it is made anew"
            (listed,) = [
                tool
                for tool in (await live.ask("GET", "/api/tools")).value["tools"]
                if tool["name"] == "mcp_a_echo"
            ]
            assert (listed["state"], listed["cause"]) == ("unavailable", cause)
            found = (await live.ask("GET", "/api/tools/search?q=mcp_a_echo")).value
            assert "unavailable" in str(found)
            (offered,) = await mcp_tools(live, "mcp_a_echo")
            assert "[unavailable now: cannot connect" in offered["description"]
            server.start()

            async def is_back() -> bool:
                return described(hub, "mcp_a_echo") == ("ready", None)

            await until(is_back)
            (offered,) = await mcp_tools(live, "mcp_a_echo")
            assert "[unavailable" not in offered["description"]


async def mcp_tools(live: Any, name: str) -> list[Any]:
    params = {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    }
    headers = {"MCP-Protocol-Version": "2026-07-28", "MCP-Method": "tools/list"}
    headers["Accept"] = "application/json, text/event-stream"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    reply = await live.ask("POST", "/mcp?view=tools", body, **headers)
    return [tool for tool in reply.value["result"]["tools"] if tool["name"] == name]


@pytest.mark.parametrize("reconnects", [True, False])
async def test_after_a_disconnect_tools_are_unavailable_until_wanted(
    tmp_path: Path, reconnects: bool
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **quick(auto_reconnect=reconnects))
        await hub.connectors.disconnect("a")
        state, cause = described(hub, "mcp_a_echo")
        assert state == "unavailable"
        assert "disconnected" in (cause or "")
        output = await hub.call("mcp_a_echo", {"text": "hi"})
        if not reconnects:
            assert output.error is not None
            assert output.error.code == "unreachable"
            assert described(hub, "mcp_a_echo")[0] == "unavailable"
            await hub.connectors.connect("a")
            output = await hub.call("mcp_a_echo", {"text": "hi"})
        assert output.result == "hi", output.error
        assert described(hub, "mcp_a_echo") == ("ready", None)
