"""Rows that two processes write, and what each is told of the other: on any store of the two databases."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from store_values import NOON, a_connector, a_secret, a_tool

from dragoman.agent import Agent
from dragoman.errors import Conflict, NotFound, Outdated
from dragoman.people import ApiKey, Thread, User, Workspace
from dragoman.store import Store, open_store
from dragoman.store.changes import KEPT, SqlChanges, change_of, note
from dragoman.store.records import Change
from dragoman.store.tables import agents, metadata

pytestmark = pytest.mark.anyio

# Tables that are neither compared nor told, each with the reason.
ONLY_ADDED = "rows are added, and never read to be written again"
COUNTED = "numbers are added up by the database"
FENCED = "its own columns are compared: status, worker, expiry"
WITH_ITS_OWNER = "written only together with a row that is compared"
LEFT_ALONE = {
    "results": ONLY_ADDED,
    "calls": ONLY_ADDED,
    "audit": ONLY_ADDED,
    "audit_heads": "locked by who appends",
    "messages": ONLY_ADDED,
    "run_steps": ONLY_ADDED,
    "run_events": ONLY_ADDED,
    "rollout_samples": ONLY_ADDED,
    "changes": ONLY_ADDED,
    "tool_versions": WITH_ITS_OWNER,
    "allowances": "replaced whole by an answer, which is compared; read anew for every call",
    "connector_metrics": COUNTED,
    "metric_buckets": COUNTED,
    "usage": COUNTED,
    "agent_numbers": COUNTED,
    "app_files": "each process writes its own row",
    "oauth_clients": "rows are added; what is written again is how long they stay, which only grows",
    "signing_keys": ONLY_ADDED,
    "leases": FENCED,
    "authorization_flows": FENCED,
    "runs": FENCED,
    "questions": FENCED,
}
# Told to others, and compared otherwise than by a revision.
COMPARED_OTHERWISE = {
    "secrets": "replaced whole while the connector's row is locked and compared",
    "loaded_tools": "a row is there or not",
    "approvals": FENCED,
    "client_sessions": "read and changed while its row is locked",
    "one_time_values": "a row is there or not",
}


def test_every_table_is_compared_and_told_or_has_a_reason() -> None:
    for name, table in metadata.tables.items():
        is_told, is_compared = "told" in table.info, "revision" in table.c
        if name in LEFT_ALONE:
            assert not is_told, name
            assert not is_compared, name
        else:
            assert is_told, f"{name}: say what others are told of a change (`_told`), or why nothing"
            assert is_compared or name in COMPARED_OTHERWISE, f"{name}: two processes may overwrite"


@pytest.fixture
async def stores(database_url: str) -> AsyncGenerator[tuple[Store, Store]]:
    """The same database, opened by two."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(open_store(database_url))
        yield first, await stack.enter_async_context(open_store(database_url))


ANN = User(id="ann", workspace="acme", name="Ann", created_at=NOON)
ACME = Workspace(id="acme", name="Acme", created_at=NOON)
CLERK = Agent(id="a", workspace="acme", name="clerk", kind="worker")
KEY = ApiKey(id="k", workspace="acme", user="ann", name="laptop", hash="h", hint="drk_")
THREAD = Thread(id="t", workspace="acme", user="ann")


async def put(store: Store, noun: Any) -> None:
    people = store.people
    ways = {
        User: people.put_user,
        Workspace: people.put_workspace,
        ApiKey: people.put_key,
        Agent: store.agents.put,
        Thread: store.threads.put,
    }
    await ways[type(noun)](noun)


@pytest.mark.parametrize(
    ("noun", "change"),
    [
        (ACME, {"name": "Other"}),
        (ANN, {"role": "admin"}),
        (KEY, {"name": "desk"}),
        (CLERK, {"description": "works"}),
        (THREAD, {"title": "talk"}),
    ],
    ids=lambda one: type(one).__name__,
)
async def test_who_has_not_read_the_last_change_writes_nothing(
    stores: tuple[Store, Store], noun: Any, change: dict[str, Any]
) -> None:
    first, second = stores
    for before in (ACME, ANN, KEY, CLERK, THREAD):
        await put(first, before)
    read = replace(noun, revision=1)
    await put(first, replace(read, **change))
    with pytest.raises(Outdated) as refused:
        await put(second, read)
    assert refused.value.hint
    await put(second, replace(read, **change, revision=2))
    with pytest.raises(Conflict):
        await put(second, replace(noun, revision=0))


async def test_of_ten_that_read_the_same_one_writes(stores: tuple[Store, Store]) -> None:
    await put(stores[0], ACME)
    tries = [put(stores[n % 2], replace(ACME, name=f"n{n}", revision=1)) for n in range(10)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(outcome is None for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Outdated) for outcome in outcomes) == 9


async def test_what_was_removed_is_not_brought_back_by_who_read_it(stores: tuple[Store, Store]) -> None:
    first, second = stores
    await put(first, CLERK)
    await first.agents.remove("acme", "a")
    with pytest.raises(NotFound):
        await put(second, replace(CLERK, revision=1))


async def test_a_connector_is_written_by_who_has_read_it_last(stores: tuple[Store, Store]) -> None:
    first, second = stores
    await first.connectors.add(a_connector(), [])
    await first.connectors.update(a_connector(revision=2, description="ours"))
    with pytest.raises(Outdated):
        await second.connectors.update(a_connector(revision=2, description="theirs"))
    assert not await second.connectors.learn(a_connector(era="2025"))
    assert await second.connectors.learn(a_connector(revision=2, era="2025", instructions="be kind"))
    (kept,) = await first.connectors.list()
    assert (kept.description, kept.era, kept.instructions) == ("ours", "2025", "be kind")
    await first.connectors.update(a_connector(revision=3, era="2026"))
    (kept,) = await first.connectors.list()
    assert (kept.era, kept.instructions) == ("2025", "be kind"), (
        "what a server told is not a person's to write"
    )


async def test_a_tool_is_written_by_who_has_read_it_last(stores: tuple[Store, Store]) -> None:
    first, second = stores
    await first.connectors.add(a_connector(), [])
    await first.connectors.save_tools([a_tool()], [], [])
    with pytest.raises(Outdated):
        await second.connectors.save_tools([a_tool(enabled=False)], [], [])
    await first.connectors.save_tools([a_tool(enabled=False, revision=1)], [], [])
    with pytest.raises(Outdated):
        await second.connectors.save_tools([a_tool(cost=1.0, revision=1)], [], [])
    assert await second.connectors.tools() == [a_tool(enabled=False)]


async def told(store: Store, since: Any) -> tuple[list[tuple[str, str, str]], Any]:
    batch = await store.changes.after(since)
    assert batch.changes is not None
    return [(one.kind, one.what, one.subject) for one in batch.changes], batch.position


async def test_each_is_told_what_the_other_wrote_once_and_nothing_of_its_own(
    stores: tuple[Store, Store],
) -> None:
    first, second = stores
    here, there = await first.changes.end(), await second.changes.end()
    await put(first, ACME)
    await put(first, ANN)
    await put(first, replace(ANN, role="admin", revision=1))
    await first.connectors.add(a_connector(), [])
    await first.connectors.put_secrets(a_connector(), ("local", "ann"), [a_secret(user="ann")])
    await first.connectors.save_tools([a_tool()], [], [])
    await first.connectors.remove("local", "con_time")
    assert (await told(first, here))[0] == []
    heard, there = await told(second, there)
    assert heard == [
        ("workspace", "added", "acme"),
        ("user", "added", "ann"),
        ("user", "updated", "ann"),
        ("connector", "added", "con_time"),
        ("credential", "updated", "con_time"),
        ("tools", "updated", "con_time"),
        ("connector", "removed", "con_time"),
    ]
    assert (await told(second, there))[0] == []


async def test_a_change_says_which_fields_are_new_and_no_value(stores: tuple[Store, Store]) -> None:
    first, second = stores
    await put(first, ACME)
    await put(first, ANN)
    here = await second.changes.end()
    preferences = replace(ANN.preferences, auto_load=False)
    await put(first, replace(ANN, preferences=preferences, role="admin", revision=1))
    batch = await second.changes.after(here)
    assert batch.changes == (
        Change(
            kind="user",
            what="updated",
            workspace="acme",
            user="ann",
            subject="ann",
            details={"changed": ["preferences.auto_load", "role"]},
        ),
    )


async def test_what_is_taken_back_is_told_to_nobody(stores: tuple[Store, Store]) -> None:
    first, second = stores
    here = await second.changes.end()
    with pytest.raises(NotFound):
        await put(first, ANN)  # without her workspace
    assert (await told(second, here))[0] == []


def database_of(store: Store) -> Any:
    assert isinstance(store.changes, SqlChanges)
    return store.changes._database


async def test_a_transaction_that_ends_late_is_told_though_later_numbers_were_read(postgres_url: str) -> None:
    """Numbers are given when rows are inserted; here the lower one is committed last, twice over."""
    async with open_store(postgres_url) as slow, open_store(postgres_url) as quick:
        reader = await slow.changes.end()
        async with open_store(postgres_url) as third:
            here = await third.changes.end()
            database = database_of(slow)
            async with database.write() as connection:
                row = {"workspace": "acme", "owner": "", "id": "late"}
                await connection.run_sync(note, database, change_of(agents, row, "added"))
                await put(quick, CLERK)
                heard, here = await told(third, here)
                assert heard == [("agent", "added", "a")]
                await quick.agents.remove("acme", "a")
                heard, here = await told(third, here)
                assert heard == [("agent", "removed", "a")], "what was read before is not told again"
            heard, here = await told(third, here)
            assert heard == [("agent", "added", "late")]
            assert (await told(third, here))[0] == []
            assert [subject for _, _, subject in (await told(slow, reader))[0]] == ["a", "a"]


async def test_who_was_away_until_changes_were_trimmed_reads_everything_again(
    stores: tuple[Store, Store],
) -> None:
    first, second = stores
    here = await second.changes.end()
    await put(first, ACME)
    await first.changes.trim(here.read_at + 2 * KEPT)
    assert (await told(second, here))[0] == [], "trimmed: nothing tells of it"
    away = replace(here, read_at=here.read_at - KEPT)
    batch = await second.changes.after(away)
    assert batch.changes is None
    assert (await told(second, batch.position))[0] == []


async def test_a_position_of_another_database_is_none(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        here = await store.changes.end()
        batch = await store.changes.after(replace(here, horizon=here.horizon + 10**9))
        assert batch.changes is None


async def test_an_idle_file_is_not_asked(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as first, open_store(sqlite_url) as second:
        await put(first, ACME)
        assert second.changes.may_be_new()
        changes: Any = second.changes
        past = (NOON - timedelta(days=1)).timestamp()
        os.utime(changes._file, (past, past))
        assert second.changes.may_be_new()
        assert not second.changes.may_be_new(), "nobody has written since"
        await put(first, ANN)
        assert second.changes.may_be_new()


async def test_a_row_with_a_revision_is_never_just_replaced(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        with pytest.raises(ValueError, match="revision"):
            database_of(store).upsert(agents)
