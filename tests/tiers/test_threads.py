"""What is active in a conversation: chosen by its user, bounded from above, effective for the next call."""

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
from dragoman.people import Bounds
from servers.account_server import AccountServer, tool
from tiers.people import ADA, BOB, NORA, SAM, bring, open_team

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncGenerator[AccountServer]:
    async with AccountServer(lambda _: [tool("read"), tool("write")]) as server:
        yield server


async def add_three(hub: Hub, server: AccountServer) -> None:
    await hub.connectors.add("alpha", url=server.url, shared=True, caller=NORA)
    await hub.connectors.add("beta", url=server.url, caller=ADA)
    await hub.connectors.add("gamma", url=server.url, aliases=["the_third"], caller=ADA)


async def code(hub: Hub, name: str, thread: str) -> str | None:
    output = await hub.call(name, caller=replace(ADA, thread=thread))
    return output.error.code if output.error else None


async def test_what_is_disabled_in_a_thread_fails_at_the_next_call_and_only_there(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        await add_three(hub, server)
        thread = (await hub.threads.create("work", caller=ADA)).thread.id
        other = (await hub.threads.create(caller=ADA)).thread.id
        assert (await hub.threads.get(thread, ADA)).active == ("alpha", "beta", "gamma")
        assert await code(hub, "mcp_beta_read", thread) is None
        view = await hub.threads.disable(thread, "beta", caller=ADA)
        assert view.active == view.thread.connectors == ("alpha", "gamma")
        output = await hub.call("mcp_beta_read", caller=replace(ADA, thread=thread))
        assert output.error is not None
        assert (output.error.code, output.error.hint) == ("denied", f"dragoman threads add {thread} beta")
        assert await code(hub, "beta__read", thread) == "denied"
        assert await code(hub, "mcp_nothing_read", thread) == "not_found"
        assert await code(hub, "mcp_beta_read", other) is None
        assert (await hub.call("mcp_beta_read", caller=ADA)).ok
        await hub.threads.add(thread, "beta", caller=ADA)
        assert await code(hub, "mcp_beta_read", thread) is None
        assert (await hub.threads.set(thread, ["the_third"], ADA)).active == ("gamma",)
        assert await code(hub, "mcp_alpha_read", thread) == "denied"
        assert (await hub.threads.set(thread, None, ADA)).thread.connectors is None
        assert await code(hub, "mcp_alpha_read", thread) is None
    async with open_team(tmp_path, database_url) as hub:
        assert [view.thread.id for view in await hub.threads.list(caller=ADA)] == [thread, other]


async def test_a_thread_is_its_users_alone(tmp_path: Path, database_url: str) -> None:
    async with open_team(tmp_path, database_url) as hub:
        thread = (await hub.threads.create("secret plans", [], caller=ADA)).thread.id
        for caller in (BOB, NORA, SAM):
            for asked in (
                hub.threads.get(thread, caller),
                hub.threads.remove(thread, caller),
                hub.threads.set(thread, [], caller),
                hub.threads.add(thread, "native", caller=caller),
                hub.threads.disable(thread, "native", caller=caller),
                hub.threads.tools(thread, caller=caller),
            ):
                with pytest.raises(NotFound):
                    await asked
            assert await hub.threads.list(caller=caller) == []
        own = await hub.threads.create("mine", id=thread, caller=BOB)
        assert own.thread.title == "mine"
        assert (await hub.threads.get(thread, ADA)).thread.title == "secret plans"
        with pytest.raises(Conflict):
            await hub.threads.create(id=thread, caller=BOB)


async def test_only_what_the_user_sees_can_be_chosen(
    tmp_path: Path, sqlite_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        await add_three(hub, server)
        with pytest.raises(NotFound, match="alhpa") as caught:
            await hub.threads.create(connectors=["alhpa"], caller=ADA)
        assert "did you mean 'alpha'" in (caught.value.hint or "")
        with pytest.raises(NotFound):
            await hub.threads.create(connectors=["beta"], caller=BOB)
        thread = (await hub.threads.create(connectors=["alpha"], caller=BOB)).thread.id
        with pytest.raises(NotFound):
            await hub.threads.add(thread, "gamma", caller=BOB)
        for wrong in ("", "a\0b", "\ud800", "x" * 201):
            with pytest.raises(InvalidArguments):
                await hub.threads.create(id=wrong, caller=BOB)
            with pytest.raises(NotFound):
                await hub.threads.get(wrong, BOB)
            assert (await hub.call("mcp_alpha_read", caller=replace(BOB, thread=wrong))).ok
        await hub.connectors.disable("alpha", NORA)
        assert (await hub.threads.get(thread, BOB)).notes == ("alpha is disabled",)


async def test_never_are_more_active_than_the_bound_allows(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url, bounds=Bounds(max_connectors_per_thread=2)) as hub:
        await add_three(hub, server)
        thread = (await hub.threads.create(caller=ADA)).thread.id
        assert (await hub.threads.get(thread, ADA)).active == ("alpha", "beta"), "the first by name"
        assert await code(hub, "mcp_gamma_read", thread) == "denied"
        assert await code(hub, "mcp_gamma_read", "never-written-down") == "denied"
        with pytest.raises(LimitReached, match="at most 2 connectors, not 3") as caught:
            await hub.threads.add(thread, "gamma", caller=ADA)
        assert "ask an admin" in (caught.value.hint or "")
        with pytest.raises(LimitReached):
            await hub.threads.create(connectors=["alpha", "beta", "gamma"], caller=ADA)
        await hub.threads.set(thread, ["gamma", "alpha"], ADA)
        await hub.preferences.update(bounds={"max_connectors_per_thread": 1}, caller=ADA)
        view = await hub.threads.get(thread, ADA)
        assert (view.active, view.notes) == (("gamma",), ("at most 1 may be active: alpha left out",))
        assert await code(hub, "mcp_alpha_read", thread) == "denied"
        with pytest.raises(LimitReached) as caught:
            await hub.threads.set(thread, ["gamma", "alpha"], ADA)
        assert "preferences set" in (caught.value.hint or "")


async def test_a_new_thread_has_the_users_default_set_whatever_it_is_by_then(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        await add_three(hub, server)
        thread = (await hub.threads.create(caller=ADA)).thread.id
        await hub.preferences.update(connectors=["beta"], caller=ADA)
        for one in (thread, "never-written-down"):
            assert await code(hub, "mcp_alpha_read", one) == "denied"
            assert await code(hub, "mcp_beta_read", one) is None
        await hub.preferences.update(auto_load=False, caller=ADA)
        assert await code(hub, "mcp_beta_read", thread) == "denied"
        await hub.preferences.update(connectors="all", auto_load=True, caller=ADA)
        assert await code(hub, "mcp_alpha_read", thread) is None
        assert await hub.threads.narrowed(replace(ADA, thread=thread)) == replace(ADA, thread=thread)
        assert [view.thread.id for view in await hub.threads.list(caller=ADA)] == [thread]


async def test_functions_of_this_process_are_a_connector_of_a_thread_too(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:

        @hub.tool
        def double(number: int) -> int:
            return number * 2

        thread = (await hub.threads.create(connectors=["native"], caller=ADA)).thread.id
        inside = replace(ADA, thread=thread)
        assert (await hub.call("double", {"number": 2}, caller=inside)).result == 4
        assert [one.name for one in hub.tools.list(caller=await hub.threads.narrowed(inside))] == ["double"]
        await hub.threads.disable(thread, "native", caller=ADA)
        output = await hub.call("double", {"number": 2}, caller=inside)
        assert output.error is not None
        assert output.error.code == "denied"
        assert hub.tools.list(caller=await hub.threads.narrowed(inside)) == []


async def test_a_narrower_key_changes_a_thread_without_losing_what_it_does_not_see(
    tmp_path: Path, sqlite_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        await add_three(hub, server)
        user = replace(ADA, grants=(frozenset({"mcp_integration"}),))
        key = user.narrowed(["mcp_alpha", "mcp_beta"])
        thread = (await hub.threads.create(caller=user)).thread.id
        assert (await hub.threads.get(thread, key)).active == ("alpha", "beta")
        assert (await hub.threads.disable(thread, "beta", caller=key)).active == ("alpha",)
        assert (await hub.threads.get(thread, user)).active == ("alpha", "gamma")
        with pytest.raises(NotFound):
            await hub.threads.add(thread, "gamma", caller=key)
        output = await hub.call("mcp_gamma_read", caller=replace(key, thread=thread))
        assert output.error is not None
        assert output.error.code == "not_found", "what a key does not see does not exist for it"
        missing = (await hub.threads.tools(thread, caller=key)).missing
        assert "gamma" not in repr(missing)


async def test_parallel_changes_of_a_thread_all_count(
    tmp_path: Path, database_url: str, server: AccountServer
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        await add_three(hub, server)
        thread = (await hub.threads.create(connectors=[], caller=ADA)).thread.id
        async with asyncio.TaskGroup() as tasks:
            for slug in ("alpha", "beta", "gamma"):
                tasks.create_task(hub.threads.add(thread, slug, caller=ADA))
        assert sorted((await hub.threads.get(thread, ADA)).active) == ["alpha", "beta", "gamma"]


async def test_a_change_is_told_to_its_user_only(tmp_path: Path, sqlite_url: str) -> None:
    heard: dict[str, list[Event]] = {"ada": [], "bob": []}

    async def hear(hub: Hub, caller: Any) -> None:
        async for event in hub.events(caller=caller):
            heard[caller.user].append(event)

    async with open_team(tmp_path, sqlite_url) as hub, asyncio.TaskGroup() as tasks:
        listening = [tasks.create_task(hear(hub, caller)) for caller in (ADA, BOB)]
        await asyncio.sleep(0)  # until they listen
        thread = (await hub.threads.create(connectors=[], caller=ADA)).thread.id
        await hub.threads.add(thread, "native", caller=ADA)
        await hub.threads.add(thread, "native", caller=ADA)
        await hub.threads.remove(thread, ADA)
        await hub.preferences.update(auto_load=False, caller=ADA)
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
        found = await hub.threads.tools(thread, caller=ADA, **narrowed)
        return [info.tool.name for info in found.tools], [one.text for one in found.missing]

    async with (
        AccountServer(lambda token: [tool("pull")] if token == "t" else None) as github,
        AccountServer(lambda _: [tool("find")]) as search,
        open_team(tmp_path, database_url) as hub,
    ):
        await add_three(hub, server)
        await hub.connectors.add("other", url=server.url, caller=BOB)
        personal: Any = {"auth": {"kind": "bearer"}, "personal": ("auth",)}
        await hub.connectors.add(
            "github", url=github.url, **personal, shared=True, connect=False, caller=NORA
        )
        thread = (await hub.threads.create(caller=ADA)).thread.id
        everything = [
            f"mcp_{slug}_{name}" for slug in ("alpha", "beta", "gamma") for name in ("read", "write")
        ]
        assert await listed(hub) == (everything, ["tools hidden: connect your github account"])
        await bring(hub, "github", "t", ADA)
        assert await listed(hub) == ([*everything, "mcp_github_pull"], [])

        await hub.threads.disable(thread, "gamma", caller=ADA)
        await hub.tools.disable("mcp_beta_read", ADA)
        await hub.connectors.disable("alpha", NORA)
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
        hints = {one.why: one.hint for one in (await hub.threads.tools(thread, caller=ADA)).missing}
        assert hints["inactive"] == f"dragoman threads add {thread} gamma"
        await hub.connectors.add("search", url=search.url, caller=ADA, health_interval=0)
        await hub.threads.set(thread, ["search"], ADA)
        await search.__aexit__()
        assert not (await hub.call("mcp_search_find", caller=replace(ADA, thread=thread))).ok
        names, missing = await listed(hub, tools=["mcp_search"])
        assert (names, len(missing)) == ([], 1)
        assert missing[0].startswith("1 tool unavailable: search cannot be reached: ")
        assert "other" not in json.dumps(await listed(hub))


async def test_a_changed_tool_of_a_pinned_connector_is_missing_until_it_is_accepted(
    tmp_path: Path, sqlite_url: str
) -> None:
    shown = [tool("read")]
    async with AccountServer(lambda _: shown) as server, open_team(tmp_path, sqlite_url) as hub:
        await hub.connectors.add("pinned", url=server.url, pin="block", caller=ADA)
        shown = [tool("read", "Reads, and tells others")]
        await hub.connectors.refresh("pinned", ADA)
        thread = (await hub.threads.create(caller=ADA)).thread.id
        found = await hub.threads.tools(thread, caller=ADA)
        assert (found.tools, [one.why for one in found.missing]) == ((), ["changed"])
        await hub.tools.accept("mcp_pinned_read", ADA)
        assert (await hub.threads.tools(thread, caller=ADA)).missing == ()
