"""A process that has not heard of a change yet changes the same thing: nothing is lost, whoever is first.

`stale` is a hub that is told nothing of what others do: for as long as a test takes, it is in the moment
before it hears.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.errors import Conflict, NotFound
from dragoman.hub import agent_records
from dragoman.settings import Settings
from dragoman.store import open_store
from dragoman.store.protocols import NoChanges
from patience import patient
from servers.hubs import QUICK, runtime_of
from servers.processes import stdio

pytestmark = pytest.mark.anyio
ECHO = "mcp_box_echo"


@dataclass
class Two:
    hub: Hub
    stale: Hub


@asynccontextmanager
async def open_two(home: Path, url: str) -> AsyncGenerator[Two]:
    """Both know the connector `box`, the agent `clerk`, the user `ann`, a key of hers and the thread `t`."""
    settings = Settings(home=home, database_url=url)
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(Hub(settings))
        await hub.connectors.add("box", **QUICK, **stdio())
        await hub.agents.create("clerk")
        await hub.people.add_user("ann")
        await hub.threads.create(id="t")
        store = await stack.enter_async_context(open_store(url))
        deaf = replace(store, changes=NoChanges())
        stale = await stack.enter_async_context(Hub(settings, store=deaf))
        await stale.agents.list()
        yield Two(hub, stale)


async def test_a_process_that_learns_from_a_server_keeps_what_people_set_elsewhere(
    tmp_path: Path, database_url: str
) -> None:
    async with open_two(tmp_path, database_url) as two:
        await two.hub.connectors.update("box", request_timeout=7.0, description="ours", connect=False)
        await two.stale.connectors.refresh("box")
        async with open_store(two.stale.settings.store_url) as store:
            kept = await store.connectors.list()
        (box,) = [one for one in kept if one.slug == "box"]
        assert (box.configuration.request_timeout, box.description) == (7.0, "ours")
        assert box == (await two.hub.connectors.get("box")).connector


@dataclass(frozen=True)
class Case:
    """What one process sets, and what the other sets before it hears of it: something else, and the same."""

    ours: Callable[[Hub], Awaitable[Any]]
    other: Callable[[Hub], Awaitable[Any]]
    same: Callable[[Hub], Awaitable[Any]]
    kept: Callable[[Hub], Awaitable[tuple[Any, ...]]]
    wanted: tuple[Any, ...]


async def box(hub: Hub) -> tuple[Any, ...]:
    view = await hub.connectors.get("box")
    return (view.connector.description, view.connector.configuration.max_tools)


async def clerk(hub: Hub) -> tuple[Any, ...]:
    agent = await hub.agents.get("clerk")
    return (agent.instructions, agent.description)


async def echo(hub: Hub) -> tuple[Any, ...]:
    tool = hub.tools.get(ECHO)
    return (tool.cost, tool.cache_ttl)


CASES = {
    "connector": Case(
        lambda hub: hub.connectors.update("box", description="ours", connect=False),
        lambda hub: hub.connectors.update("box", max_tools=40, connect=False),
        lambda hub: hub.connectors.update("box", description="theirs", connect=False),
        box,
        ("ours", 40),
    ),
    "tool": Case(
        lambda hub: hub.tools.configure(ECHO, cost=1.5),
        lambda hub: hub.tools.configure(ECHO, cache_ttl=9.0),
        lambda hub: hub.tools.configure(ECHO, cost=2.5),
        echo,
        (1.5, 9.0),
    ),
    "agent": Case(
        lambda hub: hub.agents.update("clerk", instructions="ours"),
        lambda hub: hub.agents.update("clerk", description="works"),
        lambda hub: hub.agents.update("clerk", instructions="theirs"),
        clerk,
        ("ours", "works"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_another_field_is_added_and_the_same_field_is_a_conflict(
    tmp_path: Path, database_url: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_records, "FRESH", patient(60.0))
    async with open_two(tmp_path, database_url) as two:
        await case.ours(two.hub)
        with pytest.raises(Conflict, match="somebody else has changed") as refused:
            await case.same(two.stale)
        assert refused.value.hint
        await case.other(two.stale)
        assert await case.kept(two.stale) == case.wanted
    async with Hub(two.hub.settings) as later:
        assert await case.kept(later) == case.wanted
        await case.same(later)  # who has seen it may change it


async def test_a_switch_elsewhere_stands_beside_what_is_set_here(tmp_path: Path, database_url: str) -> None:
    async with open_two(tmp_path, database_url) as two:
        await two.hub.connectors.update("box", description="ours", connect=False)
        await two.stale.connectors.disable("box")
        await two.hub.tools.disable(ECHO)
        await two.stale.tools.configure(ECHO, cost=1.0)
    async with Hub(two.hub.settings) as later:
        view = await later.connectors.get("box")
        assert (view.connector.description, view.connector.enabled) == ("ours", False)
        assert (later.tools.get(ECHO).enabled, later.tools.get(ECHO).cost) == (False, 1.0)


async def test_what_was_removed_elsewhere_is_gone_here_once_it_is_touched(
    tmp_path: Path, database_url: str
) -> None:
    async with open_two(tmp_path, database_url) as two:
        await two.hub.connectors.remove("box")
        with pytest.raises(NotFound):
            await two.stale.connectors.update("box", description="a ghost", connect=False)
        assert [view.connector.slug for view in await two.stale.connectors.list()] == ["native"]
        with pytest.raises(NotFound):
            await two.stale.connectors.get("box")


async def test_a_process_that_was_away_reads_everything_again(tmp_path: Path, database_url: str) -> None:
    async with open_two(tmp_path, database_url) as two:
        await two.hub.connectors.add("new", **QUICK, **stdio())
        await two.hub.tools.disable(ECHO)
        await two.hub.agents.stop("clerk")
        await two.hub.connectors.add("old", **QUICK, **stdio("--era", "2025"), connect=False)
        await runtime_of(two.stale).changes.reload()
        assert (await two.stale.call("mcp_new_echo", {"text": "x"})).ok
        refused = await two.stale.call(ECHO, {"text": "x"})
        assert refused.error is not None
        assert refused.error.code == "tool_disabled"
        assert (await two.stale.agents.get("clerk")).status == "stopped"
        assert (await two.stale.connectors.get("old")).connector.slug == "old"
        await two.hub.connectors.remove("new")
        await runtime_of(two.stale).changes.reload()
        with pytest.raises(NotFound):
            await two.stale.connectors.get("new")
