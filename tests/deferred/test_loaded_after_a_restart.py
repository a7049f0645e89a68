"""What a thread has loaded is there again after a restart, on both databases."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.errors import InvalidArguments, StoreUnavailable
from dragoman.hub.loaded_tools import LoadedTools
from dragoman.people import Thread
from dragoman.scope import LOCAL_CALLER
from dragoman.store import open_store
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio
OTHER = Caller(LOCAL_CALLER.workspace, "somebody_else")
SHOP = ("send_email", "read_inbox", "get_forecast", "convert_currency")


@asynccontextmanager
async def open_shop(home: Path, database_url: str, **settings: Any) -> AsyncGenerator[Hub]:
    async with open_hub(home, database_url=database_url, defer_tools="always", **settings) as hub:
        for name in SHOP:
            hub.add_tool(lambda: None, name=name, description=name.replace("_", " "))
        yield hub


async def in_view(hub: Hub, thread: str) -> set[str]:
    return {tool.name for tool in (await hub.tools.footprint(thread)).tools if not tool.deferred}


async def test_a_restarted_hub_knows_what_its_threads_had_loaded(tmp_path: Path, database_url: str) -> None:
    async with open_shop(tmp_path, database_url) as hub:
        await hub.tools.load(["send_email", "get_forecast"], "work")
        await hub.tools.load(["read_inbox"], "work")
        await hub.tools.load(["send_email"], "work")
        await hub.tools.load(["convert_currency"], "other")
        await hub.tools.unload(["read_inbox"], "work")
    async with open_shop(tmp_path, database_url) as hub:
        assert hub.tools.loaded("work") == ("get_forecast", "send_email")
        assert hub.tools.loaded("other") == ("convert_currency",)
        assert hub.acting_for(OTHER).tools.loaded("work") == ()
        assert await in_view(hub, "work") == {"get_forecast", "send_email"}
        assert await hub.tools.load(["send_email", "read_inbox"], "work") == ("read_inbox",)
        assert await hub.tools.unload(thread="work") == ("get_forecast", "send_email", "read_inbox")
    async with open_shop(tmp_path, database_url) as hub:
        assert hub.tools.loaded("work") == ()
        assert hub.tools.loaded("other") == ("convert_currency",)


async def test_what_a_prompt_loaded_is_there_after_a_restart(tmp_path: Path, database_url: str) -> None:
    async with open_shop(tmp_path, database_url) as hub:
        found = await hub.tools.resolve("send an email", thread="work", max_tools=1)
        assert found.loaded == ("send_email",)
    async with open_shop(tmp_path, database_url) as hub:
        again = await hub.tools.resolve("send an email", thread="work", max_tools=1)
        assert again.hits
        assert again.loaded == ()


async def test_a_removed_thread_has_nothing_loaded_after_a_restart(tmp_path: Path, database_url: str) -> None:
    async with open_shop(tmp_path, database_url) as hub:
        for thread in ("work", "other"):
            await hub.threads.create(id=thread)
            await hub.tools.load(["send_email"], thread)
        await hub.threads.remove("work")
    async with open_shop(tmp_path, database_url) as hub:
        assert hub.tools.loaded("work") == ()
        assert hub.tools.loaded("other") == ("send_email",)


async def test_a_hub_sees_what_another_one_on_the_same_database_loaded(
    tmp_path: Path, database_url: str
) -> None:
    async with open_shop(tmp_path, database_url) as one, open_shop(tmp_path, database_url) as other:
        await one.tools.load(["send_email"], "work")
        assert await in_view(other, "work") == {"send_email"}
        assert await other.tools.load(["send_email"], "work") == ()
        assert await other.tools.unload(thread="work") == ("send_email",)
        assert await in_view(one, "work") == set()


async def test_many_loads_at_once_lose_nothing(tmp_path: Path, database_url: str) -> None:
    async with open_shop(tmp_path, database_url) as hub:
        new = await asyncio.gather(*(hub.tools.load([name], "work") for name in SHOP * 3))
        assert sorted(name for names in new for name in names) == sorted(SHOP)
        assert {*hub.tools.loaded("work")} == {*SHOP}
    async with open_shop(tmp_path, database_url) as hub:
        assert {*hub.tools.loaded("work")} == {*SHOP}


async def test_a_thread_that_nobody_wrote_down_is_forgotten_in_the_end(database_url: str) -> None:
    async with open_store(database_url) as store:
        await store.threads.put(Thread(id="written", workspace="w", user="u"))
        loaded = LoadedTools(store.threads)
        for thread in ("written", "unwritten"):
            await loaded.add(("w", "u", thread), ["send_email"])
        await loaded.tidy(datetime.now(UTC) - timedelta(days=1))
        assert len(await store.threads.last_loaded(10)) == 2
        await loaded.tidy(datetime.now(UTC) + timedelta(days=1))
        assert [row.thread for row in await store.threads.last_loaded(10)] == ["written"]


async def test_a_removed_user_and_a_removed_workspace_leave_nothing_loaded(database_url: str) -> None:
    async with open_store(database_url) as store:
        loaded = LoadedTools(store.threads)
        for workspace, user in (("acme", "ann"), ("acme", "bob"), ("other", "ann")):
            await loaded.add((workspace, user, "t"), ["send_email"])
        await store.people.remove_user("acme", "ann")
        assert [(row.workspace, row.user) for row in await store.threads.last_loaded(10)] == [
            ("acme", "bob"),
            ("other", "ann"),
        ]
        await store.people.remove_workspace("acme")
        assert [row.workspace for row in await store.threads.last_loaded(10)] == ["other"]


async def test_a_thread_that_no_database_can_name_has_nothing_loaded(
    tmp_path: Path, database_url: str
) -> None:
    odd = Caller(LOCAL_CALLER.workspace, LOCAL_CALLER.user, thread="a\x00b")
    async with open_shop(tmp_path, database_url) as hub:
        with pytest.raises(InvalidArguments):
            await hub.acting_for(odd).tools.load(["send_email"])
        assert hub.acting_for(odd).tools.loaded() == ()
        assert (await hub.acting_for(odd).tools.footprint()).tools


async def test_a_store_that_is_gone_loads_nothing_and_says_so(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/dragoman.db", busy_timeout=0.1) as store:
        loaded, key = LoadedTools(store.threads), ("w", "u", "t")
        await loaded.add(key, ["send_email"])
        _drop_table(tmp_path / "dragoman.db")
        with pytest.raises(StoreUnavailable):
            await loaded.add(key, ["read_inbox"])
        assert loaded.of(key) == ("send_email",)


def _drop_table(path: Path) -> None:
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE loaded_tools")
    connection.close()
