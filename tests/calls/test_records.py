import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from toolshop import World, echo, made_connector, text

from dragoman.background_tasks import Supervisor
from dragoman.calls import batch_flusher
from dragoman.calls.records import FinishedCall, Recorder, open_recorder
from dragoman.errors import StoreUnavailable
from dragoman.scope import LOCAL_CALLER
from dragoman.store import open_store
from dragoman.store.records import CallRecord
from dragoman.tool import RawResult
from patience import deadline, until

pytestmark = pytest.mark.anyio


def finished(number: int = 0, ok: bool = True, duration: float = 5.0) -> FinishedCall:
    return FinishedCall(
        id=f"call_{number}",
        caller=LOCAL_CALLER,
        tool="mcp_shop_echo",
        connector=made_connector(),
        was_sent=True,
        ok=ok,
        code=None if ok else "timeout",
        message=None if ok else "no answer",
        duration_ms=duration,
        attempts=1,
        started_at=1_800_000_000.0 + number,
    )


async def test_calls_and_numbers_survive_a_restart(database_url: str) -> None:
    async def fail(arguments: Mapping[str, Any]) -> RawResult:
        return text("no", is_error=True)

    async with World(database_url) as world:
        await world.offer("echo", echo)
        await world.offer("fail", fail)
        for _ in range(3):
            await world.call("mcp_shop_echo")
        await world.call("mcp_shop_fail")
        await world.call("mcp_shop_absent")
        world.recorder.connected(world.connector, 0.25, is_reconnect=False)
        world.recorder.connected(world.connector, 0.75, is_reconnect=True)
        for _ in range(6):
            world.recorder.reused(world.connector)
    async with World(database_url) as world:
        metrics = world.recorder.metrics(world.connector)
        recent = await world.store.calls.recent("local", "owner")
    assert (metrics.calls, metrics.succeeded, metrics.failed) == (4, 3, 1)
    assert metrics.last_error == "tool_failed: no"
    assert metrics.last_error_at is not None
    assert (metrics.connects, metrics.reconnects, metrics.reuse_rate) == (2, 1, 0.75)
    assert (metrics.connect_average_ms, metrics.connect_last_ms) == (500.0, 750.0)
    assert metrics.p50_ms is not None
    assert metrics.average_ms is not None
    assert [record.code for record in recent] == ["not_found", "tool_failed", None, None, None]
    assert recent[0].connector_id is None
    assert recent[1].slug == "shop"


async def test_records_are_written_by_themselves_within_about_a_second(sqlite_url: str) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        await world.call("mcp_shop_echo")

        async def is_written() -> bool:
            return bool(await world.store.calls.recent("local", "owner"))

        await until(is_written, within=5)


async def test_a_store_that_is_away_costs_no_call_and_gets_the_records_later(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        await store.connectors.add(made_connector(), [])
        recorder = Recorder(store)
        away = _Away(store.calls)
        recorder._store = _WithCalls(store, away)  # type: ignore[assignment]
        recorder.finished(finished(1))
        await recorder.flush()
        recorder.finished(finished(2))
        away.is_back = True
        await recorder.flush()
        assert [record.id for record in await store.calls.recent("local", "owner")] == ["call_2", "call_1"]
        assert recorder.dropped == 0


async def test_one_record_that_the_store_refuses_does_not_take_the_others_along(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        recorder = Recorder(store)
        recorder._store = _WithCalls(store, _Picky(store.calls))  # type: ignore[assignment]
        for number in range(5):
            recorder.finished(finished(number))
        await recorder.flush()
        kept = {record.id for record in await store.calls.recent("local", "owner")}
        assert kept == {"call_0", "call_1", "call_2", "call_4"}
        assert recorder.dropped == 1


async def test_what_waits_is_bounded_and_what_is_lost_is_counted(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_flusher, "_MOST_WAITING", 10)
    async with open_store(sqlite_url) as store:
        recorder = Recorder(store)
        for number in range(15):
            recorder.finished(finished(number))
        assert recorder.dropped == 5
        assert recorder.metrics(made_connector()).calls == 15
        await recorder.flush()
        assert len(await store.calls.recent("local", "owner")) == 10


async def test_an_error_of_the_block_comes_out_as_it_is(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        with pytest.raises(KeyError):
            async with open_recorder(store, Supervisor()) as recorder:
                recorder.finished(finished())
                raise KeyError("mine")
        assert len(await store.calls.recent("local", "owner")) == 1


async def test_cancelling_the_block_still_writes_what_there_is(sqlite_url: str) -> None:
    begun = asyncio.Event()

    async def run() -> None:
        async with open_recorder(store, Supervisor()) as recorder:
            recorder.finished(finished())
            begun.set()
            await asyncio.Event().wait()

    async with open_store(sqlite_url) as store:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(run())
            await begun.wait()
            task.cancel()
        assert len(await store.calls.recent("local", "owner")) == 1


async def test_a_store_that_hangs_does_not_hang_the_end(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_flusher, "_LAST_WORDS", 0.1)
    async with (
        deadline(5),
        open_store(sqlite_url) as store,
        open_recorder(_WithCalls(store, _Hanging()), Supervisor()) as recorder,  # type: ignore[arg-type]
    ):
        recorder.finished(finished())


async def test_the_numbers_of_a_removed_connector_are_gone(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store, open_recorder(store, Supervisor()) as recorder:
        recorder.finished(finished())
        recorder.forget(made_connector().id)
        assert recorder.list_metrics() == []
        assert recorder.metrics(made_connector()).calls == 0


async def test_two_processes_count_together_and_each_knows_its_own(database_url: str) -> None:
    connector = made_connector()
    async with (
        open_store(database_url) as store,
        open_store(database_url) as other_store,
        open_recorder(store, Supervisor()) as one,
        open_recorder(other_store, Supervisor()) as other,
    ):
        await store.connectors.add(connector, [])
        for turn in range(3):
            for recorder, calls in ((one, 2), (other, 1)):
                for number in range(calls):
                    recorder.finished(replace(finished(number), id=f"{turn}.{calls}.{number}"))
                await recorder.flush()
        one.finished(replace(finished(), id="last"))
        (own,), (others,) = one.list_metrics(), other.list_metrics()
        assert (own.calls, others.calls) == (7, 3)
        (all_of_them,) = await one.list_installation_metrics()
        assert all_of_them.calls == sum(all_of_them.buckets) == 10
        await one.flush()
        assert one.metrics(connector).calls == 10
    async with open_store(database_url) as store, open_recorder(store, Supervisor()) as later:
        assert later.metrics(connector).calls == 10
        assert [view.calls for view in later.list_metrics()] == [0]


class _WithCalls:
    """A store whose calls go elsewhere."""

    def __init__(self, store: Any, calls: Any) -> None:
        self._store = store
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Away:
    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self.is_back = False

    async def add(self, batch: Sequence[CallRecord]) -> None:
        if not self.is_back:
            raise StoreUnavailable("away")
        await self._calls.add(batch)


class _Picky(_Away):
    async def add(self, batch: Sequence[CallRecord]) -> None:
        if any(record.id == "call_3" for record in batch):
            raise ValueError("not this one")
        await self._calls.add(batch)


class _Hanging:
    async def add(self, batch: Sequence[CallRecord]) -> None:
        await asyncio.Event().wait()
