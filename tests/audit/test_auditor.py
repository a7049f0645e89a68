"""The writer of the trail: calls never wait for it, and what it loses it says."""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import pytest
from trail import ADA

from dragoman import Caller
from dragoman.background_tasks import Supervisor
from dragoman.calls import Auditor, batch_flusher, open_auditor
from dragoman.calls.records import FinishedCall
from dragoman.errors import StoreUnavailable
from dragoman.store import open_store
from dragoman.store.audit_chain import verify
from dragoman.store.protocols import AuditStore
from dragoman.store.records import AuditEntry
from patience import deadline, patient

pytestmark = pytest.mark.anyio


def finished(number: int = 0, caller: Caller = ADA) -> FinishedCall:
    return FinishedCall(
        id=f"call_{number}",
        caller=caller,
        tool="mcp_shop_echo",
        connector=None,
        was_sent=True,
        ok=True,
        code=None,
        message=None,
        duration_ms=5.0,
        attempts=1,
        started_at=1_800_000_000.0 + number,
    )


class Failing:
    """Real rows of a store that does not answer now and then, or hangs."""

    def __init__(self, rows: AuditStore) -> None:
        self._rows = rows
        self.is_down = False
        self.open = asyncio.Event()
        self.open.set()

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        await self.open.wait()
        if self.is_down:
            raise StoreUnavailable("it does not answer")
        await self._rows.append(entries)


async def test_noting_a_call_takes_microseconds(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        auditor = Auditor(store.audit)
        one, arguments = finished(), {"text": "hello", "limit": 5}
        fastest = 1.0
        for _ in range(2000):
            started = perf_counter()
            auditor.called(one, arguments)
            fastest = min(fastest, perf_counter() - started)
        assert fastest < patient(5e-6), f"{fastest * 1e6:.1f} µs"


async def test_entries_wait_for_a_store_that_is_down_and_what_is_lost_is_in_the_trail(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_flusher, "_MOST_WAITING", 10)
    other = Caller(workspace="other", user="eve")
    async with open_store(sqlite_url) as store:
        rows: Any = Failing(store.audit)
        rows.is_down = True
        auditor = Auditor(rows)
        for number in range(15):
            auditor.called(finished(number), {})
        auditor.called(finished(99, other), {})
        await auditor.flush()
        assert auditor.dropped == 6
        assert not await store.audit.read("acme")
        with pytest.raises(StoreUnavailable):
            await auditor.done(ADA, "key.added", "k")
        rows.is_down = False
        await auditor.flush()
        await auditor.flush()
        *calls, lost = await store.audit.read("acme")
        assert [entry.details["call"] for entry in calls] == [f"call_{number}" for number in range(10)]
        assert (lost.action, lost.user, lost.details) == ("audit.lost", "", {"entries": 5})
        assert [entry.details for entry in await store.audit.read("other")] == [{"entries": 1}]
        assert verify([*calls, lost], (0, "")).is_whole


async def test_an_entry_that_the_store_refuses_takes_no_other_along(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        auditor = Auditor(store.audit)
        for number, user in enumerate(("ada", "a\x00", "bob")):
            auditor.called(finished(number, Caller(workspace="acme", user=user)), {})
        await auditor.flush()
        entries = await store.audit.read("acme")
        assert [(entry.user, entry.action) for entry in entries] == [
            ("ada", "call"),
            ("bob", "call"),
            ("", "audit.lost"),
        ]
        assert verify(entries, (0, "")).is_whole


async def test_arguments_that_are_no_json_harm_nothing(sqlite_url: str) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    async with open_store(sqlite_url) as store:
        auditor = Auditor(store.audit)
        for arguments in ({"a": object()}, {"a": {1, 2}}, deep, None):
            auditor.called(finished(), arguments)
        await auditor.flush()
        assert [entry.arguments_hash for entry in await store.audit.read("acme")] == [None] * 4


async def test_the_last_entries_are_written_at_the_end(database_url: str) -> None:
    async with open_store(database_url) as store:
        with pytest.raises(KeyError):
            async with open_auditor(store.audit, Supervisor()) as auditor:
                for number in range(450):
                    auditor.called(finished(number), {})
                raise KeyError("mine")
        assert len(await store.audit.read("acme")) == 450


async def test_a_store_that_hangs_delays_the_end_by_no_more_than_a_bound(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_flusher, "_LAST_WORDS", 0.1)
    async with open_store(sqlite_url) as store, deadline(5):
        rows: Any = Failing(store.audit)
        rows.open.clear()
        async with open_auditor(rows, Supervisor()) as auditor:
            auditor.called(finished(), {})


class Slow:
    """Real rows that take their time, and tell when each batch came and when it was written."""

    def __init__(self, rows: AuditStore) -> None:
        self._rows = rows
        self.go = asyncio.Event()
        self.begun: asyncio.Queue[float] = asyncio.Queue()

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        self.begun.put_nowait(perf_counter())
        await self.go.wait()
        await self._rows.append(entries)


async def test_a_call_that_ends_while_others_are_written_waits_one_second_and_not_two(
    sqlite_url: str,
) -> None:
    async with open_store(sqlite_url) as store, deadline(10):
        rows: Any = Slow(store.audit)
        async with open_auditor(rows, Supervisor()) as auditor:
            auditor.called(finished(1), {})
            await rows.begun.get()
            auditor.called(finished(2), {})
            auditor.called(finished(3), {})
            released = perf_counter()
            rows.go.set()
            assert await rows.begun.get() - released < patient(1.8)
