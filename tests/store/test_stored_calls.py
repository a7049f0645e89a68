import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from store_values import NOON, NOON_IN_ROME, a_call, a_connector, a_result

from dragoman.errors import Conflict
from dragoman.store import Store
from dragoman.telemetry.metrics import ConnectorCounters

pytestmark = pytest.mark.anyio


async def test_a_call_comes_back_as_it_went_in(store: Store) -> None:
    failed = a_call(
        thread="t", agent="mailer", way="agent", ok=False, code="timeout", message="no answer", attempts=3
    )
    nameless = a_call("call_2", connector_id=None, slug=None, started_at=NOON_IN_ROME - timedelta(hours=1))
    await store.calls.add([failed, nameless])
    assert await store.calls.recent("local", "owner") == [failed, nameless]


async def test_recent_calls_are_the_newest_of_one_user_of_one_workspace(store: Store) -> None:
    mine = [a_call(f"c{n}", started_at=NOON + timedelta(seconds=n)) for n in range(10)]
    await store.calls.add(
        [*mine, a_call("x", user="bob", started_at=NOON + timedelta(days=1)), a_call("y", workspace="other")]
    )
    assert await store.calls.recent("local", "owner", limit=3) == [mine[9], mine[8], mine[7]]
    assert [call.id for call in await store.calls.recent("other", "owner")] == ["y"]


async def test_a_batch_added_twice_is_there_once(store: Store) -> None:
    batch = [a_call(f"c{n}") for n in range(50)]
    await store.calls.add(batch)
    await store.calls.add([*batch, a_call("one_more")])
    await store.calls.add([])
    assert len(await store.calls.recent("local", "owner")) == 51


async def test_a_message_that_no_database_can_hold_does_not_spoil_the_batch(store: Store) -> None:
    await store.calls.add([a_call("a", message="nul \x00", tool="\ud800"), a_call("b")])
    a, _ = await store.calls.recent("local", "owner")
    assert (a.message, a.tool) == ("nul \ufffd", "\ufffd")


async def test_old_calls_are_forgotten_and_counted(store: Store) -> None:
    await store.calls.add([a_call(f"c{n}", started_at=NOON + timedelta(hours=n)) for n in range(5)])
    assert await store.calls.forget(NOON_IN_ROME + timedelta(hours=2)) == 2
    assert [call.id for call in await store.calls.recent("local", "owner")] == ["c4", "c3", "c2"]


async def test_a_result_is_read_by_the_user_who_made_the_call_only(store: Store) -> None:
    await store.calls.keep_result(a_result())
    assert await store.calls.find_result("local", "owner", "res_1") == a_result()
    assert await store.calls.find_result("local", "bob", "res_1") is None
    assert await store.calls.find_result("other", "owner", "res_1") is None
    assert await store.calls.find_result("local", "owner", "res_2") is None
    with pytest.raises(Conflict):
        await store.calls.keep_result(a_result(user="bob"))


async def test_old_results_are_forgotten_and_counted(store: Store) -> None:
    await store.calls.keep_result(a_result("old", created_at=NOON - timedelta(days=8)))
    await store.calls.keep_result(a_result("new"))
    assert await store.calls.forget_results(NOON - timedelta(days=7)) == 1
    assert await store.calls.find_result("local", "owner", "old") is None
    assert await store.calls.find_result("local", "owner", "new")


def _counted(calls: int, at: float = 1.0, ms: float = 2.0) -> ConnectorCounters:
    counters = ConnectorCounters("local", "time")
    for _ in range(calls):
        counters.finished(ok=True, duration_ms=ms, at=at, error=None)
    return counters


async def test_numbers_are_added_and_those_of_a_lost_connector_dropped(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    await store.connectors.add(a_connector(id="con_other", workspace="other"), [])
    failed = ConnectorCounters("other", "time")
    failed.finished(ok=False, duration_ms=1.5, at=5.0, error="no")
    await store.connectors.add_metrics({"con_time": _counted(1, at=9.0), "con_other": failed})
    told = await store.connectors.add_metrics({"con_time": _counted(2, at=4.0, ms=7.0), "con_gone": failed})
    assert [*told] == ["con_time"]
    assert await store.connectors.add_metrics({"con_gone": failed}) == {}
    assert await store.connectors.add_metrics({}) == {}
    kept = await store.connectors.metrics()
    assert kept.keys() == {"con_time", "con_other"}
    for seen in (kept["con_time"].view("con_time"), told["con_time"].view("con_time")):
        assert (seen.calls, seen.total_ms, sum(seen.buckets)) == (3, 16.0, 3)
        assert seen.average_ms == 2.0, "that of the later call"
    assert kept["con_other"].numbers() == failed.numbers()


async def test_fifty_writers_at_once_all_get_through(store: Store) -> None:
    await store.connectors.add(a_connector(), [])

    async def write(n: int) -> None:
        await store.calls.add([a_call(f"{n}.{k}") for k in range(10)])
        await store.connectors.add_metrics({"con_time": _counted(n)})
        await store.calls.keep_result(a_result(f"res_{n}", body=b"x"))
        assert await store.calls.find_result("local", "owner", f"res_{n}")

    async with asyncio.TaskGroup() as group:
        for n in range(50):
            group.create_task(write(n))
    assert len(await store.calls.recent("local", "owner", limit=1000)) == 500
    assert (await store.connectors.metrics())["con_time"].succeeded == sum(range(50))


async def test_writers_that_are_cancelled_leave_the_store_in_order(store: Store) -> None:
    async def write(n: int) -> None:
        await store.calls.add([a_call(f"{n}.{k}") for k in range(20)])

    for round_number in range(10):
        tasks = [asyncio.create_task(write(100 * round_number + n)) for n in range(20)]
        for yields in range(20):
            await asyncio.sleep(0)
            if yields % 3 == 0:
                tasks[yields].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await store.calls.add([a_call("last")])
    kept = Counter(
        call.id.partition(".")[0] for call in await store.calls.recent("local", "owner", limit=10_000)
    )
    assert kept.pop("last") == 1
    assert {*kept.values()} == {20}
