"""What is active in a conversation: chosen by its user, limited from above, effective for the next call."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.errors import Conflict, InvalidArguments, LimitReached, NotFound
from dragoman.events import Event
from dragoman.people import UserLimits
from servers.account_server import AccountServer, tool
from tiers.people import ADA, BOB, NORA, SAM, bring, open_team

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncGenerator[AccountServer]:
    async with AccountServer(lambda _: [tool("read"), tool("write")]) as server:
        yield server


async def add_three(hub: Hub, server: AccountServer) -> None:
    await hub.acting_for(NORA).connectors.add("alpha", url=server.url, shared=True)
    await hub.acting_for(ADA).connectors.add("beta", url=server.url)
    await hub.acting_for(ADA).connectors.add("gamma", url=server.url, aliases=["the_third"])


async def code(hub: Hub, name: str, thread: str) -> str | None:
    output = await hub.acting_for(replace(ADA, thread=thread)).call(name)
    return output.error.code if output.error else None


async def test_what_is_disabled_in_a_thread_fails_at_the_next_call_and_only_there(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        await add_three(hub, server)
        thread = (await hub.acting_for(ADA).threads.create("work")).thread.id
        other = (await hub.acting_for(ADA).threads.create()).thread.id
        assert (await hub.acting_for(ADA).threads.get(thread)).active == ("alpha", "beta", "gamma")
        assert await code(hub, "mcp_beta_read", thread) is None
        view = await hub.acting_for(ADA).threads.disable(thread, "beta")
        assert view.active == view.thread.connectors == ("alpha", "gamma")
        output = await hub.acting_for(replace(ADA, thread=thread)).call("mcp_beta_read")
        assert output.error is not None
        assert (output.error.code, output.error.hint) == ("denied", f'hub.threads.add("{thread}", "beta")')
        assert await code(hub, "beta__read", thread) == "denied"
        assert await code(hub, "mcp_nothing_read", thread) == "not_found"
        assert await code(hub, "mcp_beta_read", other) is None
        assert (await hub.acting_for(ADA).call("mcp_beta_read")).ok
        await hub.acting_for(ADA).threads.add(thread, "beta")
        assert await code(hub, "mcp_beta_read", thread) is None
        assert (await hub.acting_for(ADA).threads.set(thread, ["the_third"])).active == ("gamma",)
        assert await code(hub, "mcp_alpha_read", thread) == "denied"
        assert (await hub.acting_for(ADA).threads.set(thread, None)).thread.connectors is None
        assert await code(hub, "mcp_alpha_read", thread) is None
    async with open_team(tmp_path, database_url) as hub:
        assert [view.thread.id for view in await hub.acting_for(ADA).threads.list()] == [thread, other]


async def test_a_thread_is_its_users_alone(tmp_path: Path, database_url: str) -> None:
    async with open_team(tmp_path, database_url) as hub:
        thread = (await hub.acting_for(ADA).threads.create("secret plans", [])).thread.id
        for caller in (BOB, NORA, SAM):
            for asked in (
                hub.acting_for(caller).threads.get(thread),
                hub.acting_for(caller).threads.remove(thread),
                hub.acting_for(caller).threads.set(thread, []),
                hub.acting_for(caller).threads.add(thread, "native"),
                hub.acting_for(caller).threads.disable(thread, "native"),
                hub.acting_for(caller).threads.tools(thread),
            ):
                with pytest.raises(NotFound):
                    await asked
            assert await hub.acting_for(caller).threads.list() == []
        own = await hub.acting_for(BOB).threads.create("mine", id=thread)
        assert own.thread.title == "mine"
        assert (await hub.acting_for(ADA).threads.get(thread)).thread.title == "secret plans"
        with pytest.raises(Conflict):
            await hub.acting_for(BOB).threads.create(id=thread)


async def test_only_what_the_user_sees_can_be_chosen(
    tmp_path: Path, sqlite_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        await add_three(hub, server)
        with pytest.raises(NotFound, match="alhpa") as caught:
            await hub.acting_for(ADA).threads.create(connectors=["alhpa"])
        assert "did you mean 'alpha'" in (caught.value.hint or "")
        with pytest.raises(NotFound):
            await hub.acting_for(BOB).threads.create(connectors=["beta"])
        thread = (await hub.acting_for(BOB).threads.create(connectors=["alpha"])).thread.id
        with pytest.raises(NotFound):
            await hub.acting_for(BOB).threads.add(thread, "gamma")
        for wrong in ("", "a\0b", "\ud800", "x" * 201):
            with pytest.raises(InvalidArguments):
                await hub.acting_for(BOB).threads.create(id=wrong)
            with pytest.raises(NotFound):
                await hub.acting_for(BOB).threads.get(wrong)
            assert (await hub.acting_for(replace(BOB, thread=wrong)).call("mcp_alpha_read")).ok
        await hub.acting_for(NORA).connectors.disable("alpha")
        assert (await hub.acting_for(BOB).threads.get(thread)).notes == ("alpha is disabled",)


async def test_never_are_more_active_than_the_limit_allows(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url, limits=UserLimits(max_connectors_per_thread=2)) as hub:
        await add_three(hub, server)
        thread = (await hub.acting_for(ADA).threads.create()).thread.id
        assert (await hub.acting_for(ADA).threads.get(thread)).active == ("alpha", "beta"), (
            "the first by name"
        )
        assert await code(hub, "mcp_gamma_read", thread) == "denied"
        assert await code(hub, "mcp_gamma_read", "never-written-down") == "denied"
        with pytest.raises(LimitReached, match="at most 2 connectors, not 3") as caught:
            await hub.acting_for(ADA).threads.add(thread, "gamma")
        assert "ask an admin" in (caught.value.hint or "")
        with pytest.raises(LimitReached):
            await hub.acting_for(ADA).threads.create(connectors=["alpha", "beta", "gamma"])
        await hub.acting_for(ADA).threads.set(thread, ["gamma", "alpha"])
        await hub.acting_for(ADA).preferences.update(limits={"max_connectors_per_thread": 1})
        view = await hub.acting_for(ADA).threads.get(thread)
        assert (view.active, view.notes) == (("gamma",), ("at most 1 may be active: alpha left out",))
        assert await code(hub, "mcp_alpha_read", thread) == "denied"
        with pytest.raises(LimitReached) as caught:
            await hub.acting_for(ADA).threads.set(thread, ["gamma", "alpha"])
        assert "hub.preferences.update" in (caught.value.hint or "")


async def test_a_new_thread_has_the_users_default_set_whatever_it_is_by_then(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        await add_three(hub, server)
        thread = (await hub.acting_for(ADA).threads.create()).thread.id
        await hub.acting_for(ADA).preferences.update(connectors=["beta"])
        for one in (thread, "never-written-down"):
            assert await code(hub, "mcp_alpha_read", one) == "denied"
            assert await code(hub, "mcp_beta_read", one) is None
        await hub.acting_for(ADA).preferences.update(auto_load=False)
        assert await code(hub, "mcp_beta_read", thread) == "denied"
        await hub.acting_for(ADA).preferences.update(connectors=None, auto_load=True)
        assert await code(hub, "mcp_alpha_read", thread) is None
        inside = replace(ADA, thread=thread)
        assert (await hub.acting_for(inside).in_thread()).caller == inside
        assert [view.thread.id for view in await hub.acting_for(ADA).threads.list()] == [thread]


async def test_functions_of_this_process_are_a_connector_of_a_thread_too(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:

        @hub.tool
        def double(number: int) -> int:
            return number * 2

        thread = (await hub.acting_for(ADA).threads.create(connectors=["native"])).thread.id
        inside = replace(ADA, thread=thread)
        assert (await hub.acting_for(inside).call("double", {"number": 2})).result == 4
        assert [one.name for one in (await hub.acting_for(inside).in_thread()).tools.list()] == ["double"]
        await hub.acting_for(ADA).threads.disable(thread, "native")
        output = await hub.acting_for(inside).call("double", {"number": 2})
        assert output.error is not None
        assert output.error.code == "denied"
        assert (await hub.acting_for(inside).in_thread()).tools.list() == []


async def test_a_narrower_key_changes_a_thread_without_losing_what_it_does_not_see(
    tmp_path: Path, sqlite_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        await add_three(hub, server)
        user = replace(ADA, grants=(frozenset({"mcp_integration"}),))
        key = user.narrowed(["mcp_alpha", "mcp_beta"])
        thread = (await hub.acting_for(user).threads.create()).thread.id
        assert (await hub.acting_for(key).threads.get(thread)).active == ("alpha", "beta")
        assert (await hub.acting_for(key).threads.disable(thread, "beta")).active == ("alpha",)
        assert (await hub.acting_for(user).threads.get(thread)).active == ("alpha", "gamma")
        with pytest.raises(NotFound):
            await hub.acting_for(key).threads.add(thread, "gamma")
        output = await hub.acting_for(replace(key, thread=thread)).call("mcp_gamma_read")
        assert output.error is not None
        assert output.error.code == "not_found", "what a key does not see does not exist for it"
        missing = (await hub.acting_for(key).threads.tools(thread)).missing
        assert "gamma" not in repr(missing)


async def test_parallel_changes_of_a_thread_all_count(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        await add_three(hub, server)
        thread = (await hub.acting_for(ADA).threads.create(connectors=[])).thread.id
        async with asyncio.TaskGroup() as tasks:
            for slug in ("alpha", "beta", "gamma"):
                tasks.create_task(hub.acting_for(ADA).threads.add(thread, slug))
        assert sorted((await hub.acting_for(ADA).threads.get(thread)).active) == ["alpha", "beta", "gamma"]


async def test_a_change_is_told_to_its_user_only(tmp_path: Path, sqlite_url: str) -> None:
    heard: dict[str, list[Event]] = {"ada": [], "bob": []}

    async def hear(hub: Hub, caller: Any) -> None:
        async for event in hub.acting_for(caller).events():
            heard[caller.user].append(event)

    async with open_team(tmp_path, sqlite_url) as hub, asyncio.TaskGroup() as tasks:
        listening = [tasks.create_task(hear(hub, caller)) for caller in (ADA, BOB)]
        await asyncio.sleep(0)  # until they listen
        thread = (await hub.acting_for(ADA).threads.create(connectors=[])).thread.id
        await hub.acting_for(ADA).threads.add(thread, "native")
        await hub.acting_for(ADA).threads.add(thread, "native")
        await hub.acting_for(ADA).threads.remove(thread)
        await hub.acting_for(ADA).preferences.update(auto_load=False)
        await asyncio.sleep(0)
        for one in listening:
            one.cancel()
    told = [(event.kind, event.data.get("what")) for event in heard["ada"]]
    assert told == [
        ("thread.changed", "created"),
        ("thread.changed", "changed"),
        ("thread.changed", "removed"),
        ("preferences.changed", None),
    ]
    assert heard["bob"] == []


async def test_the_tools_of_a_thread_come_with_reasons_for_those_that_are_missing(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async def listed(hub: Hub, **narrowed: Any) -> tuple[list[str], list[str]]:
        found = await hub.acting_for(ADA).threads.tools(thread, **narrowed)
        return [info.tool.name for info in found.tools], [one.text for one in found.missing]

    async with (
        AccountServer(lambda token: [tool("pull")] if token == "t" else None) as github,
        AccountServer(lambda _: [tool("find")]) as search,
        open_team(tmp_path, database_url) as hub,
    ):
        await add_three(hub, server)
        await hub.acting_for(BOB).connectors.add("other", url=server.url)
        personal: Any = {"auth": {"kind": "bearer"}, "personal": ("auth",)}
        await hub.acting_for(NORA).connectors.add(
            "github", url=github.url, **personal, shared=True, connect=False
        )
        thread = (await hub.acting_for(ADA).threads.create()).thread.id
        everything = [
            f"mcp_{slug}_{name}" for slug in ("alpha", "beta", "gamma") for name in ("read", "write")
        ]
        assert await listed(hub) == (everything, ["tools hidden: connect your github account"])
        await bring(hub, "github", "t", ADA)
        assert await listed(hub) == ([*everything, "mcp_github_pull"], [])

        await hub.acting_for(ADA).threads.disable(thread, "gamma")
        await hub.acting_for(ADA).tools.disable("mcp_beta_read")
        await hub.acting_for(NORA).connectors.disable("alpha")
        assert await listed(hub) == (
            ["mcp_beta_write", "mcp_github_pull"],
            [
                "2 tools hidden: alpha is disabled",
                "1 tool hidden: disabled in beta",
                "2 tools hidden: gamma is not active in this thread",
            ],
        )
        assert await listed(hub, max_tools=1) == (
            ["mcp_beta_write"],
            [*(await listed(hub))[1], "1 tool hidden: at most 1 were asked for"],
        )
        assert await listed(hub, tools=["beta__write", "gamma__read", "mcp_other_read", "github"]) == (
            ["mcp_beta_write", "mcp_github_pull"],
            [
                "1 tool hidden: there is no tool 'mcp_other_read'",
                "1 tool hidden: gamma is not active in this thread",
            ],
        )
        hints = {one.why: one.hint for one in (await hub.acting_for(ADA).threads.tools(thread)).missing}
        assert hints["inactive"] == f'hub.threads.add("{thread}", "gamma")'
        await hub.acting_for(ADA).connectors.add("search", url=search.url, health_interval=0)
        await hub.acting_for(ADA).threads.set(thread, ["search"])
        await search.__aexit__()
        assert not (await hub.acting_for(replace(ADA, thread=thread)).call("mcp_search_find")).ok
        names, missing = await listed(hub, tools=["mcp_search"])
        assert (names, len(missing)) == ([], 1)
        assert missing[0].startswith("1 tool unavailable: search cannot be reached: ")
        assert "other" not in json.dumps(await listed(hub))


async def test_a_changed_tool_of_a_pinned_connector_is_missing_until_it_is_accepted(
    tmp_path: Path, sqlite_url: str
) -> None:
    shown = [tool("read")]
    async with AccountServer(lambda _: shown) as server, open_team(tmp_path, sqlite_url) as hub:
        await hub.acting_for(ADA).connectors.add("pinned", url=server.url, pin="block")
        shown = [tool("read", "Reads, and tells others")]
        await hub.acting_for(ADA).connectors.refresh("pinned")
        thread = (await hub.acting_for(ADA).threads.create()).thread.id
        found = await hub.acting_for(ADA).threads.tools(thread)
        assert (found.tools, [one.why for one in found.missing]) == ((), ["changed"])
        await hub.acting_for(ADA).tools.accept("mcp_pinned_read")
        assert (await hub.acting_for(ADA).threads.tools(thread)).missing == ()
