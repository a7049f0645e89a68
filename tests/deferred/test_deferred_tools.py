"""Deferred tools in the hub: when they are, how a thread loads and unloads them, and who decides."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.errors import Conflict, InvalidArguments, NotFound
from dragoman.events import Event
from dragoman.hub.loaded_tools import MOST_LOADED, LoadedChange, LoadedTools
from dragoman.scope import LOCAL_CALLER
from dragoman.store import open_store
from servers.hubs import open_hub, quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio
OTHER = Caller(LOCAL_CALLER.workspace, "somebody_else")
SHOP = {
    "send_email": "Sends an email to people.",
    "read_inbox": "Lists the newest emails of the inbox.",
    "get_forecast": "Tells the weather of the coming days.",
    "convert_currency": "Converts an amount of money into another currency.",
}


@asynccontextmanager
async def open_shop(home: Path, **settings: Any) -> AsyncGenerator[Hub]:
    async with open_hub(home, **settings) as hub:
        for name, description in SHOP.items():
            hub.add_tool(lambda: None, name=name, description=description)
        yield hub


async def deferred(hub: Hub, thread: str | None = None, caller: Caller = LOCAL_CALLER) -> set[str]:
    return {
        tool.name for tool in (await hub.acting_for(caller).tools.footprint(thread)).tools if tool.deferred
    }


async def loaded_news(hub: Hub, number: int) -> list[Event]:
    found: list[Event] = []
    async for event in hub.events():
        if event.kind in ("tools.loaded", "tools.unloaded"):
            found.append(event)
        if len(found) == number:
            break
    return found


async def test_tools_are_deferred_as_soon_as_they_take_more_than_the_budget(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as hub:
        whole = await hub.tools.footprint()
        assert not await deferred(hub)
        assert whole.tokens == whole.tokens_in_view == sum(tool.tokens for tool in whole.tools) > 40
        assert hub.tools.info("send_email").tokens == next(
            tool.tokens for tool in whole.tools if tool.name == "send_email"
        )
    async with open_shop(tmp_path, tool_budget=whole.tokens) as hub:
        assert not await deferred(hub)
    async with open_shop(tmp_path, tool_budget=whole.tokens - 1) as hub:
        assert await deferred(hub) == {*SHOP}
        assert (await hub.tools.footprint()).tokens_in_view == 0


async def test_the_app_can_defer_always_or_never(tmp_path: Path) -> None:
    async with open_shop(tmp_path, defer_tools="always") as hub:
        assert await deferred(hub) == {*SHOP}
    async with open_shop(tmp_path, defer_tools="never", tool_budget=1) as hub:
        assert not await deferred(hub)


async def test_a_connector_decides_for_its_own_tools(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as hub:
        await hub.connectors.add("raw", **quick(**stdio(), deferred=True))
        names = {tool.name for tool in hub.tools.list("raw")}
        assert await deferred(hub) == names
        assert await hub.tools.load(["raw__echo"], "work") == ("mcp_raw_echo",)
        assert await deferred(hub, "work") == names - {"mcp_raw_echo"}
        assert await hub.tools.unload(["raw__echo"], "work") == ("mcp_raw_echo",)
        await hub.connectors.update("raw", deferred=False)
        assert not await deferred(hub)
    async with open_shop(tmp_path, defer_tools="always") as hub:
        assert await deferred(hub) == {*SHOP}


async def test_a_thread_loads_and_unloads_and_says_so_and_no_other_thread_notices(tmp_path: Path) -> None:
    async with open_shop(tmp_path, defer_tools="always") as hub:
        async with asyncio.TaskGroup() as group:
            news = group.create_task(loaded_news(hub, 2))
            await asyncio.sleep(0)
            assert await hub.tools.load(["send_email", "send_email"], "work") == ("send_email",)
            assert await hub.tools.load(["send_email"], "work") == ()
            assert await deferred(hub, "work") == {*SHOP} - {"send_email"}
            assert await deferred(hub, "home") == await deferred(hub) == {*SHOP}
            assert await deferred(hub, "work", OTHER) == {*SHOP}
            assert await hub.acting_for(OTHER).tools.unload(["send_email"], "work") == ()
            assert hub.tools.loaded("work") == ("send_email",)
            assert await hub.tools.unload(["send_email", "never_was"], "work") == ("send_email",)
        assert await deferred(hub, "work") == {*SHOP}
        assert [(event.kind, event.data["thread"], event.data["tools"]) for event in news.result()] == [
            ("tools.loaded", "work", ["send_email"]),
            ("tools.unloaded", "work", ["send_email"]),
        ]
        assert {event.user for event in news.result()} == {LOCAL_CALLER.user}


async def test_what_is_not_in_view_can_be_called_all_the_same(tmp_path: Path) -> None:
    async with open_shop(tmp_path, defer_tools="always") as hub:
        assert (await hub.acting_for(Caller(*_local(), thread="work")).call("send_email")).ok


async def test_a_removed_thread_forgets_what_it_had_loaded(tmp_path: Path) -> None:
    async with open_shop(tmp_path, defer_tools="always") as hub:
        await hub.threads.create(id="work")
        await hub.tools.load(["send_email"], "work")
        await hub.threads.remove("work")
        assert hub.tools.loaded("work") == ()


async def test_a_prompt_finds_its_tools_and_loads_them(tmp_path: Path) -> None:
    async with open_shop(tmp_path, defer_tools="always") as hub:
        found = await hub.tools.resolve("send an email", thread="work", max_tools=1)
        assert [info.tool.name for info, _ in found.hits] == ["send_email"] == [*found.loaded]
        assert found.summary == "1 of 4"
        assert found.tokens == hub.tools.info("send_email").tokens
        assert hub.tools.loaded("work") == ("send_email",)
        again = await hub.tools.resolve("send an email", thread="work", max_tools=1)
        assert again.hits
        assert again.loaded == ()
        nothing = await hub.tools.resolve("qwrtzx plmkij", thread="work")
        assert nothing.hits == () == nothing.loaded
        alone = await hub.tools.resolve("weather tomorrow", max_tools=1)
        assert alone.hits
        assert alone.loaded == ()


async def test_what_was_said_before_helps_where_the_prompt_says_too_little(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as hub:
        assert (await hub.tools.resolve("zwx", max_tools=1)).hits == ()
        history = ["convert money into another currency", "x\n" * 3]
        found = await hub.tools.resolve("zwx", max_tools=1, history=history[:1])
        assert found.hits[0][0].tool.name == "convert_currency"
        clear = await hub.tools.resolve("send an email", max_tools=1, history=history)
        assert clear.hits[0][0].tool.name == "send_email"


async def test_nothing_is_loaded_for_a_user_who_does_not_want_it(tmp_path: Path) -> None:
    async with open_shop(tmp_path, defer_tools="always") as hub:
        await hub.threads.create(id="work", connectors=["native"])
        await hub.preferences.update(auto_load=False)
        found = await hub.tools.resolve("send an email", thread="work")
        assert found.hits
        assert not found.auto_load
        assert found.loaded == ()
        assert hub.tools.loaded("work") == ()
        assert await hub.tools.load(["send_email"], "work") == ("send_email",)


async def test_a_tool_that_costs_too_much_is_left_out(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as hub:
        await hub.tools.configure("send_email", cost=0.5)

        async def names(limit: float | None) -> list[str]:
            found = await hub.tools.resolve("send an email", max_tools=1, cost_limit=limit)
            return [info.tool.name for info, _ in found.hits]

        assert await names(None) == await names(0.5) == ["send_email"]
        assert "send_email" not in await names(0.4)


async def test_only_what_is_active_in_the_thread_is_found_and_loaded(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as hub:
        await hub.connectors.add("raw", **quick(**stdio()))
        await hub.threads.create(id="work", connectors=["raw"])
        found = await hub.tools.resolve("send an email", thread="work")
        assert found.total == len(hub.tools.list("raw"))
        assert "send_email" not in {info.tool.name for info, _ in found.hits}
        with pytest.raises(NotFound):
            await hub.tools.load(["mcp_raw_echo", "send_email"], "work")
        assert hub.tools.loaded("work") == tuple(found.loaded)


@pytest.mark.parametrize(
    "facts",
    [
        {"prompt": " "},
        {"prompt": "x" * 100_000},
        {"max_tools": 0},
        {"max_tools": 101},
        {"cost_limit": -1},
        {"cost_limit": float("nan")},
        {"thread": ""},
        {"thread": "a\nb"},
    ],
)
async def test_a_wrong_request_is_told_how_to_ask(tmp_path: Path, facts: dict[str, Any]) -> None:
    async with open_shop(tmp_path) as hub:
        with pytest.raises(InvalidArguments) as caught:
            await hub.tools.resolve(facts.pop("prompt", "email"), **facts)
        assert caught.value.hint


async def test_what_cannot_be_called_is_not_loaded(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as hub:
        await hub.tools.disable("send_email")
        with pytest.raises(Conflict, match="disabled"):
            await hub.tools.load(["read_inbox", "send_email"], "work")
        assert hub.tools.loaded("work") == ()
        with pytest.raises(InvalidArguments, match="thread"):
            await hub.tools.load(["read_inbox"])


async def test_a_thread_holds_a_bounded_number_of_tools_and_the_oldest_go_first(database_url: str) -> None:
    key = ("w", "u", "t")
    async with open_store(database_url) as store:
        loaded = LoadedTools(store.threads)
        await loaded.add(key, (f"tool{number}" for number in range(MOST_LOADED)))
        await loaded.add(key, ["tool0"])
        assert await loaded.add(key, ["one_more"]) == LoadedChange(("one_more",), ("tool1",))
        assert len(loaded.of(key)) == MOST_LOADED
        assert loaded.of(key)[-2:] == ("tool0", "one_more")
        assert await LoadedTools(store.threads).read(key) == loaded.of(key)


def _local() -> tuple[str, str]:
    return LOCAL_CALLER.workspace, LOCAL_CALLER.user
