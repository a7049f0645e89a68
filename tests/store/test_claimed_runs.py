"""Who executes a run: two stores on one database are two processes."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from run_values import LATER, a_child, a_message, a_run, a_step, accept
from store_values import NOON

from dragoman.store import Store, open_store
from dragoman.store.records import HeldRuns, JournalBatch

pytestmark = pytest.mark.anyio

MUCH_LATER = LATER + timedelta(minutes=1)


@pytest.fixture
async def other_store(store: Store, database_url: str) -> AsyncGenerator[Store]:
    async with open_store(database_url) as opened:
        yield opened


async def _claimed(store: Store, worker: str = "w1", dead: Sequence[str] = (), limit: int = 100) -> list[str]:
    return [run.id for run in await store.runs.claim(worker, LATER, NOON, dead=dead, limit=limit)]


async def test_a_claimed_run_says_by_whom_and_until_when(store: Store) -> None:
    await accept(store, a_run())
    held = replace(a_run(), worker="w1", lease_until=LATER)
    assert await store.runs.claim("w1", LATER, NOON) == [held]
    assert await store.runs.find("local", "run_1") == held
    assert await store.runs.claim("w2", LATER, NOON) == []


async def test_only_unfinished_root_runs_are_claimed_the_oldest_first(store: Store) -> None:
    for number, status in enumerate(("waiting", "running", "queued", "done", "failed", "cancelled")):
        created_at = NOON - timedelta(seconds=number)
        await accept(store, a_run(f"run_{number}", status=status, created_at=created_at))
    await accept(store, a_child(a_run("run_0"), "run_6"))
    assert await _claimed(store, limit=2) == ["run_2", "run_1"]
    assert await _claimed(store) == ["run_0"]


async def test_of_a_thread_only_the_oldest_unfinished_run_is_claimed(store: Store) -> None:
    first = a_run("run_9", thread="t1")
    second = a_run("run_1", thread="t1", created_at=NOON - timedelta(seconds=9))
    for run in (first, second, a_run("run_2", thread="t1", user="bob"), a_run("run_3", thread="t2")):
        await accept(store, run, a_message(thread=run.thread, user=run.user))
    await accept(store, a_run("run_1", thread="t1", workspace="other"))
    taken = await store.runs.claim("w1", LATER, NOON)
    assert {(run.workspace, run.id) for run in taken} == {
        ("local", "run_9"),
        ("local", "run_2"),
        ("local", "run_3"),
        ("other", "run_1"),
    }
    await store.runs.write(JournalBatch(runs=[replace(first, message=1, status="waiting")]))
    assert await _claimed(store) == []
    await store.runs.write(JournalBatch(runs=[replace(first, message=1, status="done")]))
    assert await _claimed(store) == ["run_1"]


async def test_a_child_of_a_thread_is_in_nobodys_way(store: Store) -> None:
    root = a_run("run_1", thread="t1", status="done", message=1)
    await accept(store, root)
    await accept(store, a_child(root, "run_2", message=1))
    await accept(store, a_run("run_3", thread="t1", message=2))
    assert await _claimed(store) == ["run_3"]


async def test_runs_without_a_thread_are_claimed_at_once(store: Store) -> None:
    for number in range(3):
        await accept(store, a_run(f"run_{number}"))
    assert await _claimed(store) == ["run_0", "run_1", "run_2"]


async def test_a_run_without_a_message_waits_for_its_thread_and_is_not_overtaken(store: Store) -> None:
    await accept(store, a_run("run_1", thread="t1"))
    assert await _claimed(store) == ["run_1"]
    await accept(store, a_run("run_2", thread="t1", message=1))
    assert await _claimed(store) == []
    await store.runs.release("w1")
    assert await _claimed(store) == ["run_2"]
    assert await _claimed(store) == []


async def test_two_processes_never_get_the_same_run(store: Store, other_store: Store) -> None:
    runs = [a_run(f"run_{number:02}", thread=f"t{number % 30}" if number % 2 else "") for number in range(40)]
    for run in runs:
        await accept(store, run)
    claims = [
        one.runs.claim(worker, LATER, NOON, limit=3)
        for one, worker in ((store, "w1"), (other_store, "w2"))
        for _ in range(8)
    ]
    taken = Counter(run.id for found in await asyncio.gather(*claims) for run in found)
    while more := [*await _claimed(store), *await _claimed(other_store, "w2")]:
        taken.update(more)
    assert set(taken.values()) == {1}
    assert len(taken) == 35  # of five threads two runs each


async def test_of_many_who_want_one_run_one_gets_it(store: Store, other_store: Store) -> None:
    await accept(store, a_run())
    claims = [
        one.runs.claim(f"w{number}", LATER, NOON) for number, one in enumerate([store, other_store] * 8)
    ]
    found = [run for runs in await asyncio.gather(*claims) for run in runs]
    assert len(found) == 1
    kept = await store.runs.find("local", "run_1")
    assert kept is not None
    assert kept.worker == found[0].worker


async def test_a_run_whose_lease_is_over_is_taken_over(store: Store, other_store: Store) -> None:
    await accept(store, a_run(thread="t1", status="running"))
    await store.runs.claim("w1", LATER, NOON)
    assert await other_store.runs.claim("w2", MUCH_LATER, LATER - timedelta(seconds=1)) == []
    (taken,) = await other_store.runs.claim("w2", MUCH_LATER, LATER)
    assert (taken.worker, taken.lease_until, taken.status) == ("w2", MUCH_LATER, "running")
    assert await store.runs.renew("w1", MUCH_LATER) == frozenset()


async def test_what_a_dead_worker_held_is_taken_over_at_once(store: Store) -> None:
    for run in ("run_1", "run_2"):
        await accept(store, a_run(run))
    assert await _claimed(store, "w1", limit=1) == ["run_1"]
    assert await _claimed(store, "w2") == ["run_2"]
    assert (await store.runs.holders()).keys() == {"w1", "w2"}
    assert await _claimed(store, "w3", dead=["w1"]) == ["run_1"]
    assert await store.runs.holders() == {"w2": HeldRuns(LATER, 1), "w3": HeldRuns(LATER, 1)}


async def test_renewing_lengthens_what_is_held_and_says_what_it_is(store: Store) -> None:
    for run in ("run_1", "run_2", "run_3"):
        await accept(store, a_run(run))
    await store.runs.claim("w1", LATER, NOON, limit=2)
    await store.runs.write(JournalBatch(runs=[a_run("run_1", status="done")]))
    assert await store.runs.renew("w1", MUCH_LATER) == {"run_2"}
    assert await store.runs.renew("w2", MUCH_LATER) == frozenset()
    held = await store.runs.find("local", "run_2")
    assert held is not None
    assert held.lease_until == MUCH_LATER


async def test_what_is_released_may_be_taken_at_once(store: Store) -> None:
    await accept(store, a_run())
    await store.runs.claim("w1", LATER, NOON)
    await store.runs.release("w2")
    assert await _claimed(store, "w2") == []
    await store.runs.release("w1")
    assert await store.runs.holders() == {}
    assert await _claimed(store, "w2") == ["run_1"]


async def test_a_queued_run_that_nobody_holds_is_cancelled_at_once(store: Store) -> None:
    await accept(store, a_run())
    assert await store.runs.ask_cancel("local", "run_1")
    cancelled = await store.runs.find("local", "run_1")
    assert cancelled is not None
    assert (cancelled.status, cancelled.cancel_asked) == ("cancelled", True)
    assert cancelled.finished_at is not None
    assert not await store.runs.ask_cancel("local", "run_1")
    assert await _claimed(store) == []


async def test_who_holds_a_run_hears_that_it_shall_end(store: Store) -> None:
    await accept(store, a_run())
    await accept(store, a_run("run_2", status="waiting"))
    always = NOON + timedelta(days=36500)
    await store.runs.claim("w1", always, NOON, limit=1)
    for run in ("run_1", "run_2"):
        assert await store.runs.ask_cancel("local", run)
    assert await store.runs.cancels("w1") == {"run_1"}
    assert await store.runs.cancels("w2") == frozenset()
    assert [run.cancel_asked for run in await store.runs.claim("w2", LATER, NOON)] == [True]
    await store.runs.write(JournalBatch(runs=[a_run(status="cancelled")]))
    assert await store.runs.cancels("w1") == frozenset()


async def test_a_child_or_a_run_that_is_not_there_cannot_be_cancelled(store: Store) -> None:
    await accept(store, a_run())
    await accept(store, a_child(a_run(), "run_2"))
    assert not await store.runs.ask_cancel("local", "run_2")
    assert not await store.runs.ask_cancel("local", "run_3")


async def test_journals_leases_and_claims_do_not_stop_each_other(store: Store, other_store: Store) -> None:
    runs = [a_run(f"run_{number}") for number in range(10)]
    for run in runs:
        await accept(store, run)
    await store.runs.claim("w1", LATER, NOON)
    backwards = runs[::-1]
    await asyncio.gather(
        *(
            store.runs.write(JournalBatch(runs=backwards, steps=[a_step(run) for run in runs]))
            for _ in range(10)
        ),
        *(store.runs.renew("w1", LATER) for _ in range(10)),
        *(other_store.runs.claim("w2", LATER, NOON) for _ in range(10)),
    )
    assert [len(await store.runs.steps("local", run.id)) for run in runs] == [10] * 10
