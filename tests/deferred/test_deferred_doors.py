"""Deferred tools over REST, the command and the MCP door."""

from pathlib import Path

import pytest

from api.live import open_service
from cli.command_line import Command
from dragoman.web.scopes import needed_scope
from mcp_endpoint.doors import open_door, subscribed
from servers.hubs import quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio


def send_email(to: str) -> str:
    """Sends an email to people."""
    return to


def get_forecast(town: str) -> str:
    """Tells the weather of the coming days."""
    return town


async def test_rest_resolves_loads_unloads_and_shows_the_footprint(tmp_path: Path) -> None:
    async with open_service(tmp_path, defer_tools="always") as live:
        for function in (send_email, get_forecast):
            live.hub.add_tool(function)
        found = await live.ask(
            "POST", "/api/tools/resolve", {"prompt": "send an email", "thread": "t", "max_tools": 1}
        )
        assert found.value["loaded"] == ["send_email"] == [hit["name"] for hit in found.value["hits"]]
        assert found.value["summary"] == "1 of 2"
        assert found.value["tokens"] == found.value["hits"][0]["tokens"] > 10
        cost = (await live.ask("GET", "/api/tools/footprint?thread=t")).value
        assert cost["connectors"] == [
            {
                "connector": "native",
                "tools": 2,
                "tokens": cost["tokens"],
                "tools_in_view": 1,
                "tokens_in_view": found.value["tokens"],
            }
        ]
        names = {"thread": "t", "tools": ["get_forecast"]}
        assert (await live.ask("POST", "/api/tools/load", names)).value == {
            "thread": "t",
            "changed": ["get_forecast"],
            "loaded": ["send_email", "get_forecast"],
        }
        assert (await live.ask("POST", "/api/tools/unload", names)).value["loaded"] == ["send_email"]
        assert (await live.ask("POST", "/api/tools/unload", {"thread": "t"})).value["loaded"] == []
        unknown = await live.ask("POST", "/api/tools/load", {"thread": "t", "tools": ["missing"]})
        assert (unknown.status, unknown.value["code"]) == (404, "not_found")
        for body in ({}, {"thread": "t", "tools": []}, {"thread": "", "tools": ["x"]}, {"prompt": 1}):
            assert (await live.ask("POST", "/api/tools/load", body)).status == 422


def test_a_key_that_may_call_may_load() -> None:
    for word in ("resolve", "load", "unload"):
        assert needed_scope("POST", f"/api/tools/{word}") == "call"
    assert needed_scope("GET", "/api/tools/footprint") == "read"
    assert needed_scope("POST", "/api/tools/unload/enable") == "manage"


def test_the_command_resolves_and_shows_the_footprint(
    dragoman: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_NATIVE_TOOLS", "read_file,grep")
    monkeypatch.setenv("DRAGOMAN_TOOLS_ROOT", str(tmp_path))
    cost = dragoman("tools", "footprint", "--json").value
    assert cost["budget"] == 10_000
    shown = dragoman("tools", "footprint")
    assert "tokens are in view" in shown.out + shown.err
    found = dragoman("tools", "resolve", "read", "a", "file", "--json").value
    assert found["hits"][0]["name"] == "read_file"
    assert found["thread"] is None
    assert found["loaded"] == []


async def test_a_client_of_a_thread_sees_what_is_loaded_there(tmp_path: Path) -> None:
    async with open_door(tmp_path, defer_tools="always") as door:
        for function in (send_email, get_forecast):
            door.hub.add_tool(function)

        async def names(path: str) -> list[str]:
            reply = await door.ask("tools/list", path=path)
            return [tool["name"] for tool in reply.value["result"]["tools"]]

        leading = await names("/mcp?thread=t")
        assert leading[:2] == ["search_tools", "call_tool"]
        assert "send_email" not in leading
        await door.hub.tools.load(["send_email"], "t")
        assert await names("/mcp?thread=t") == [*leading, "send_email"]
        assert await names("/mcp") == leading
        await door.hub.tools.unload(["send_email"], "t")
        assert await names("/mcp?thread=t") == leading


async def test_what_is_not_deferred_stands_beside_the_search(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        door.hub.add_tool(send_email)
        await door.hub.connectors.add("raw", **quick(**stdio(), deferred=True))

        async def names() -> list[str]:
            reply = await door.ask("tools/list")
            return [tool["name"] for tool in reply.value["result"]["tools"]]

        listed = await names()
        assert (listed[0], listed[-1], "mcp_raw_echo" in listed) == ("search_tools", "send_email", False)
        await door.hub.connectors.update("raw", deferred=False)
        listed = await names()
        assert ("search_tools" in listed, "mcp_raw_echo" in listed) == (False, True)


async def test_a_client_is_told_when_a_tool_is_loaded(tmp_path: Path) -> None:
    async with open_door(tmp_path, defer_tools="always") as door:
        door.hub.add_tool(send_email)
        async with subscribed(door, "/mcp?thread=t", toolsListChanged=True) as news:
            await door.hub.tools.load(["send_email"], "t")
            assert (await news.next())["method"] == "notifications/tools/list_changed"
