"""Rows that are written many at a time: all of them or none, each as it was, and nobody is held up."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from store_values import NOON, NOON_IN_ROME, a_call

from dragoman.errors import InvalidArguments
from dragoman.store import Store
from dragoman.store.audit_chain import link, verify
from dragoman.store.bulk_insert import AT_ONCE
from dragoman.store.records import AuditEntry

pytestmark = pytest.mark.anyio


def an_entry(at: int = 0, **facts: Any) -> AuditEntry:
    defaults: dict[str, Any] = {
        "time": NOON + timedelta(microseconds=at),
        "workspace": "local",
        "user": "owner",
        "agent": None,
        "way": "direct",
        "action": "call",
        "subject": "mcp_time_now",
        "outcome": "ok",
        "arguments_hash": f"{at:064x}",
        "details": {"call": f"call_{at}", "version": 1, "thread": None, "duration_ms": at / 8},
    }
    return AuditEntry(**(defaults | facts))


async def test_more_calls_than_one_statement_takes_come_back_as_they_went_in(store: Store) -> None:
    calls = [
        a_call(
            f"c{number:04}",
            started_at=NOON - timedelta(seconds=number),
            ok=number % 2 == 0,
            code=None if number % 2 == 0 else "timeout",
            message=None if number % 2 == 0 else f"№ {number} – 'quoted' \"twice\" %s ? :x",
            thread=f"t{number}" if number % 3 else None,
            duration_ms=number / 7,
            trace={"span": number, "of": ["a", None, 1.5, True]},
        )
        for number in range(3 * AT_ONCE + 7)
    ]
    await store.calls.add(calls)
    assert await store.calls.recent("local", "owner", limit=1000) == calls


async def test_more_entries_than_one_statement_takes_make_a_chain_per_workspace(store: Store) -> None:
    entries = [
        an_entry(number, workspace="acme" if number % 3 else "local") for number in range(4 * AT_ONCE + 1)
    ]
    await store.audit.append(entries[:5])
    await store.audit.append(entries[5:])
    for workspace in ("acme", "local"):
        written = await store.audit.read(workspace, limit=10_000)
        assert verify(written, (0, "")).is_whole
        assert [entry.details["call"] for entry in written] == [
            entry.details["call"] for entry in entries if entry.workspace == workspace
        ]
        assert await store.audit.head(workspace) == (len(written), written[-1].hash)


async def test_entries_that_no_database_keeps_as_they_are_still_follow_each_other(store: Store) -> None:
    strange = {"nul": "\x00", "half": "\ud800", "large": 2**70, "list": (1, 2), "fraction": 0.1 + 0.2}
    await store.audit.append(
        [
            an_entry(1, subject="nul \x00", outcome="half \udfff", agent="a\x00"),
            an_entry(2, time=NOON_IN_ROME, details=strange),
            an_entry(3, arguments_hash=None, details={}),
        ]
    )
    written = await store.audit.read("local")
    assert verify(written, (0, "")).is_whole
    assert (written[0].subject, written[0].outcome, written[0].agent) == ("nul �", "half �", "a�")
    assert written[1].time == NOON


async def test_one_entry_that_is_refused_leaves_nothing_of_its_batch(store: Store) -> None:
    await store.audit.append([an_entry(0)])
    head = await store.audit.head("local")
    batch = [an_entry(number) for number in range(1, 3 * AT_ONCE)]
    batch[-1] = an_entry(user="half \ud800")
    with pytest.raises(InvalidArguments):
        await store.audit.append(batch)
    assert len(await store.audit.read("local")) == 1
    assert await store.audit.head("local") == head


async def test_the_event_loop_goes_on_while_thousands_are_written(store: Store) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        busy = tasks.create_task(others())
        await store.audit.append([an_entry(number) for number in range(20 * AT_ONCE)])
        busy.cancel()
    assert turns > 20


async def test_the_hash_of_an_entry_is_what_it_always_was() -> None:
    entry = an_entry(7, agent="mailer", number=12, previous="ab" * 32)
    assert link(entry) == "cc6a00daf62a51aa702e9b9485b93d18621c06185df67372c398ae7f3c8f3c00"
