"""What servers tell of prompts and resources reaches clients of both eras; and who read what is written."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from doors import Door, News, open_door, subscribed
from dragoman.people import UserLimits
from dragoman.scope import Caller
from dragoman.tool import arguments_hash
from servers.hubs import until
from servers.processes import HttpProcess

pytestmark = pytest.mark.anyio
UPSTREAM = pytest.mark.parametrize("upstream", ["2025", "2026"])
ERAS = pytest.mark.parametrize("era", ["2025", "2026"])
ALL: dict[str, Any] = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


@asynccontextmanager
async def telling(folder: Path, upstream: str, **options: Any) -> AsyncGenerator[tuple[Door, HttpProcess]]:
    with HttpProcess(folder, upstream, program="telling_server.py") as server:
        async with open_door(folder / "home", **options) as door:
            await door.hub.connectors.add("box", url=server.url, approval="never", shared=True)
            await until(lambda: server.state()["streams"] > 0)
            yield door, server


@asynccontextmanager
async def listening(door: Door, era: str, path: str, *uris: str, **headers: str) -> AsyncGenerator[News]:
    """A client that wants to hear of every list, and of these resources."""
    if era == "2026":
        async with subscribed(door, path, **ALL, resourceSubscriptions=[*uris]) as news:
            assert news.honoured == {**ALL, **({"resourceSubscriptions": [*uris]} if uris else {})}
            yield news
        return
    session = await door.open(path, None, **headers)
    for uri in uris:
        assert (await session.ask("resources/subscribe", {"uri": uri})).value["result"] == {}
    async with session.listening() as news:
        yield news


async def change(door: Door, what: str) -> None:
    assert (await door.hub.call("mcp_box_change", {"what": what})).ok


@ERAS
@UPSTREAM
async def test_changed_prompts_and_resources_are_told_to_both_eras(
    tmp_path: Path, era: str, upstream: str
) -> None:
    async with telling(tmp_path, upstream) as (door, _):
        for path in ("/mcp/box", "/mcp"):
            async with listening(door, era, path) as news:
                for what in ("prompts", "resources"):
                    await change(door, what)
                    assert (await news.next())["method"] == f"notifications/{what}/list_changed"
                await change(door, "test://a")
                assert await news.is_silent(0.2), "nobody asked for it"


@ERAS
@UPSTREAM
async def test_a_watched_resource_is_told_of_under_the_name_that_the_client_knows(
    tmp_path: Path, era: str, upstream: str
) -> None:
    async with telling(tmp_path, upstream) as (door, server):
        for path, prefix in (("/mcp/box", ""), ("/mcp", "box+")):
            async with (
                listening(door, "2025", "/mcp", "box+test://b") as others,
                listening(door, era, path, f"{prefix}test://a") as news,
            ):
                await change(door, "test://b")
                assert (await others.next())["params"]["uri"] == "box+test://b"
                await change(door, "test://a")
                told = await news.next()
                assert told["method"] == "notifications/resources/updated"
                assert told["params"]["uri"] == f"{prefix}test://a"
                assert "test://a" in server.state()["subscribed"]


async def test_what_nobody_watches_any_more_is_given_up(tmp_path: Path) -> None:
    async with telling(tmp_path, "2025") as (door, server):
        session, other = await door.open("/mcp/box"), await door.open()
        await session.ask("resources/subscribe", {"uri": "test://a"})
        await other.ask("resources/subscribe", {"uri": "box+test://a"})
        await session.ask("resources/unsubscribe", {"uri": "test://a"})
        assert server.state()["subscribed"] == ["test://a"]
        await door.send("DELETE", "/mcp", **other.headers)
        await until(lambda: server.state()["subscribed"] == [])


async def test_watches_outlive_the_connection_to_the_server(tmp_path: Path) -> None:
    async with (
        telling(tmp_path, "2025") as (door, server),
        listening(door, "2026", "/mcp/box", "test://a") as news,
    ):
        server.kill()
        server.start()
        await until(lambda: server.state()["subscribed"] == ["test://a"], 15)
        await until(lambda: server.state()["streams"] > 0, 15)
        await change(door, "test://a")
        assert (await news.next())["params"]["uri"] == "test://a"


async def test_only_who_may_read_a_resource_hears_of_it(tmp_path: Path) -> None:
    callers = {"few": Caller(user="few", grants=(frozenset({"mcp_box_change"}),))}
    async with telling(tmp_path, "2025", callers=callers) as (door, _):
        session = await door.open("/mcp/box", x_test_caller="few")
        refused = (await session.ask("resources/subscribe", {"uri": "test://a"})).value
        assert refused["error"]["code"] == -32602
        async with session.listening() as news:
            await change(door, "prompts")
            await change(door, "resources")
            assert await news.is_silent(0.2)


@ERAS
async def test_what_is_told_is_what_is_declared(tmp_path: Path, era: str) -> None:
    async def capabilities(door: Door, path: str) -> Any:
        if era == "2026":
            return (await door.ask("server/discover", path=path)).value["result"]["capabilities"]
        return (await door.open(path)).opened.value["result"]["capabilities"]

    async with telling(tmp_path, "2025") as (door, _):
        for path in ("/mcp", "/mcp/box"):
            found = await capabilities(door, path)
            assert found["resources"] == {"listChanged": True, "subscribe": True}
            assert found["prompts"] == {"listChanged": True}
    async with open_door(tmp_path / "other") as door:
        with HttpProcess(tmp_path, program="asking_server.py") as server:
            await door.hub.connectors.add("box", url=server.url)
            assert "subscribe" not in (await capabilities(door, "/mcp/box"))["resources"]
            session = await door.open("/mcp/box")
            reply = (await session.ask("resources/subscribe", {"uri": "test://a"})).value
            assert reply["error"]["code"] == -32602
            async with subscribed(door, "/mcp/box", resourceSubscriptions=["test://a"]) as news:
                assert news.honoured == {}


async def test_a_connector_that_comes_or_goes_changes_the_lists_of_prompts_and_resources(
    tmp_path: Path,
) -> None:
    with HttpProcess(tmp_path, "2025", program="telling_server.py") as server:
        async with open_door(tmp_path / "home") as door, listening(door, "2026", "/mcp") as news:
            expected = {f"notifications/{name}/list_changed" for name in ("tools", "prompts", "resources")}
            await door.hub.connectors.add("box", url=server.url)
            assert {(await news.next())["method"] for _ in range(3)} == expected
            await door.hub.connectors.remove("box")
            assert {(await news.next())["method"] for _ in range(3)} == expected


# The trail, and budgets


async def test_what_is_read_is_written_to_the_trail(tmp_path: Path) -> None:
    async with telling(tmp_path, "2025") as (door, _):
        await door.ask("resources/read", {"uri": "box+test://a"})
        await door.ask("prompts/get", {"name": "hello"}, "/mcp/box")
        await door.ask("resources/list")
        got, read = await door.hub.audit.list(action="call")
        assert (read.subject, read.outcome, read.way) == ("box: resources/read", "ok", "mcp")
        assert read.arguments_hash == arguments_hash({"uri": "test://a"})
        assert (got.subject, got.details["connector"]) == ("box: prompts/get hello", "box")
        assert "test://a" not in json.dumps([dict(read.details), read.subject])


async def test_what_is_read_counts_against_the_limits_of_its_reader(tmp_path: Path) -> None:
    async with telling(tmp_path, "2025") as (door, _):
        await door.hub.people.update_workspace("local", limits=UserLimits(calls_per_hour=2))
        for _ in range(2):
            assert "result" in (await door.ask("resources/read", {"uri": "box+test://a"})).value
        error = (await door.ask("prompts/get", {"name": "box__hello"})).value["error"]
        assert error["data"]["code"] == "limit_reached"
        assert (await door.hub.audit.list(action="call"))[0].outcome == "limit_reached"


# Structures


@ERAS
async def test_a_structure_without_a_schema_passes_through(tmp_path: Path, era: str) -> None:
    async with telling(tmp_path, "2025") as (door, _):
        call = {"name": "change", "arguments": {"what": "nothing"}}
        if era == "2026":
            result = (await door.ask("tools/call", call, "/mcp/box")).value["result"]
        else:
            session = await door.open("/mcp/box")
            result = (await session.ask("tools/call", call)).value["result"]
        assert result["structuredContent"] == {"subscribed": []}
        text = await door.ask("tools/call", {"name": "echo", "arguments": {"text": "[1]"}}, "/mcp/box")
        assert "structuredContent" not in text.value.get("result", {})


async def test_one_user_cannot_take_the_streams_of_all(tmp_path: Path) -> None:
    callers = {"other": Caller(user="other")}
    async with open_door(tmp_path, callers=callers, max_streams_per_user=2) as door:
        session = await door.open()
        async with subscribed(door, "/mcp", **ALL), subscribed(door, "/mcp", **ALL):
            listen = await door.ask("subscriptions/listen", {"notifications": ALL})
            stand = await door.send("GET", "/mcp", **session.headers)
            for refused in (listen, stand):
                assert (refused.status, b"one user may have 2" in refused.body) == (429, True), refused
            async with (await door.open(x_test_caller="other")).listening():
                pass
        await until(lambda: not door.endpoint._streams)
        async with session.listening():  # a place that was left is free again
            pass
