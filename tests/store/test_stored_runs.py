import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from run_values import LATER, a_child, a_message, a_run, a_step, accept, an_event
from store_values import NOON

from dragoman.errors import Conflict, NotFound
from dragoman.people import Thread
from dragoman.run import RunError, RunLimits, RunUsage
from dragoman.store import Store
from dragoman.store.audit_chain import verify
from dragoman.store.records import AuditEntry, BegunThread, JournalBatch, NewRun

pytestmark = pytest.mark.anyio

FULL = a_run(
    thread="t1",
    message=1,
    status="failed",
    answer="half an answer",
    error=RunError(code="limit_reached", message="enough"),
    model="openai:gpt-test",
    exposure="code",
    arm="new",
    options={"max_tools": 3, "context": "none"},
    limits=RunLimits(requests=None, cost=0.5),
    usage=RunUsage(requests=2, input_tokens=5_000_000_000, cost=0.125),
    role="admin",
    grants=(frozenset({"finance", "mcp_time"}), frozenset()),
    started_at=NOON,
    finished_at=LATER,
)


async def test_a_run_comes_back_as_it_was(store: Store) -> None:
    accepted = await accept(store, FULL)
    assert (accepted.run, accepted.message) == (FULL, None)
    assert await store.runs.find("local", "run_1") == FULL
    assert await store.runs.find("local", "run_2") is None


async def test_an_accepted_run_knows_the_number_of_its_message(store: Store) -> None:
    await store.threads.add_message(a_message("before"))
    accepted = await accept(store, a_run(thread="t1"), a_message(run="run_1"))
    assert accepted.message is not None
    assert (accepted.run.message, accepted.message.number) == (2, 2)
    assert await store.runs.find("local", "run_1") == accepted.run
    assert (await store.threads.messages("local", "owner", "t1"))[1] == accepted.message


async def test_a_run_that_is_refused_leaves_no_message(store: Store) -> None:
    await accept(store, a_run())
    with pytest.raises(Conflict):
        await accept(store, a_run(), a_message())
    assert await store.threads.messages("local", "owner", "t1") == []


async def test_a_child_of_a_run_that_is_gone_is_refused(store: Store) -> None:
    with pytest.raises(NotFound):
        await accept(store, a_child(a_run(), "run_2"))
    assert await store.runs.find("local", "run_2") is None


async def test_runs_are_listed_newest_first_and_narrowed(store: Store) -> None:
    root = a_run("run_1", thread="t1")
    child = a_child(root, "run_2", agent="time", created_at=NOON + timedelta(seconds=1))
    other = a_run("run_3", user="bob", status="done", created_at=NOON + timedelta(seconds=2))
    for run in (root, child, other):
        await accept(store, run)
    assert await store.runs.list("local") == [other, child, root]
    assert await store.runs.list("local", "owner") == [child, root]
    assert await store.runs.list("local", roots_only=True) == [other, root]
    assert await store.runs.list("local", agent="time") == [child]
    assert await store.runs.list("local", status="done") == [other]
    assert await store.runs.list("local", thread="t1", limit=1) == [child]
    assert await store.runs.list("local", before=child.created_at) == [root]
    # Only the newest are looked through.
    words = root.request.upper()
    assert root in await store.runs.list("local", words=words, among=3)
    assert root not in await store.runs.list("local", words=words, among=2)


async def test_a_family_is_the_root_and_all_under_it(store: Store) -> None:
    root = a_run("run_9")
    child = a_child(root, "run_2")
    grandchild = a_child(child, "run_1", call="3:call_b")
    for run in (root, child, grandchild, a_run("run_3")):
        await accept(store, run)
    assert [run.id for run in await store.runs.family("local", "run_9")] == ["run_9", "run_1", "run_2"]
    assert await store.runs.child("local", "run_9", "1:call_a") == child
    assert await store.runs.child("local", "run_2", "3:call_b") == grandchild
    assert await store.runs.child("local", "run_9", "3:call_b") is None


async def test_root_runs_after_a_message_are_found_in_order(store: Store) -> None:
    for number in (3, 1, 2):
        await accept(store, a_run(f"run_{number}", thread="t1", message=number))
    await accept(store, a_child(a_run("run_3", thread="t1"), "run_4", message=4))
    found = await store.runs.roots_after("local", "owner", "t1", 1)
    assert [run.id for run in found] == ["run_2", "run_3"]


async def test_steps_get_the_next_numbers_of_their_run(store: Store) -> None:
    first, second = a_run("run_1"), a_run("run_2")
    for run in (first, second):
        await accept(store, run)
    await store.runs.write(
        JournalBatch(steps=[a_step(first, "a"), a_step(second, [1]), a_step(first, {"b": 2})])
    )
    await store.runs.write(JournalBatch(steps=[a_step(first, kind="call.departed", key="1:call_a")]))
    steps = await store.runs.steps("local", "run_1")
    assert [(step.number, step.content) for step in steps] == [(1, "a"), (2, {"b": 2}), (3, None)]
    assert steps[2] == a_step(first, kind="call.departed", key="1:call_a", number=3)
    assert [step.number for step in await store.runs.steps("local", "run_2")] == [1]


async def test_batches_written_at_the_same_time_all_get_numbers(store: Store) -> None:
    root = a_run()
    await accept(store, root)
    await asyncio.gather(*(store.runs.write(JournalBatch(steps=[a_step(root, n)])) for n in range(12)))
    steps = await store.runs.steps("local", "run_1")
    assert [step.number for step in steps] == list(range(1, 13))
    assert {step.content for step in steps} == set(range(12))


async def test_events_are_read_on_from_any_number(store: Store) -> None:
    root = a_run()
    await accept(store, root)
    assert await store.runs.last_event("local", "run_1") == 0
    events = [an_event(root, number, data={"text": str(number)}) for number in range(1, 6)]
    await store.runs.write(JournalBatch(events=events))
    assert await store.runs.events("local", "run_1") == events
    assert await store.runs.events("local", "run_1", after=2, limit=2) == events[2:4]
    assert await store.runs.last_event("local", "run_1") == 5


async def test_an_event_that_is_there_is_left_as_it_is(store: Store) -> None:
    root = a_run()
    await accept(store, root)
    await store.runs.write(JournalBatch(events=[an_event(root, 1, data={"text": "first"})]))
    await store.runs.write(
        JournalBatch(events=[an_event(root, 1, data={"text": "second"}), an_event(root, 2)])
    )
    assert [event.data for event in await store.runs.events("local", "run_1")] == [{"text": "first"}, {}]


async def test_a_batch_replaces_a_run_but_not_what_others_decide(store: Store) -> None:
    await accept(store, a_run())
    (held,) = await store.runs.claim("w1", LATER, NOON)
    assert await store.runs.ask_cancel("local", "run_1")
    done = replace(held, status="waiting", answer="Noon.", worker="w2", lease_until=None)
    await store.runs.write(JournalBatch(runs=[done]))
    assert await store.runs.find("local", "run_1") == replace(
        done, worker="w1", lease_until=LATER, cancel_asked=True
    )


async def test_a_batch_brings_child_runs_with_their_first_steps(store: Store) -> None:
    root = a_run()
    await accept(store, root)
    child = a_child(root, "run_2")
    await store.runs.write(JournalBatch(runs=[child], steps=[a_step(child, "began")]))
    assert await store.runs.find("local", "run_2") == child
    assert [step.content for step in await store.runs.steps("local", "run_2")] == ["began"]


async def test_a_batch_returns_its_messages_with_their_numbers(store: Store) -> None:
    root = a_run(thread="t1")
    await accept(store, root, a_message(run="run_1"))
    answers = [a_message("One.", run="run_1"), a_message("Two."), a_message("Elsewhere.", thread="t2")]
    written = await store.runs.write(JournalBatch(messages=answers))
    assert [message.number for message in written] == [2, 3, 1]
    assert (await store.threads.messages("local", "owner", "t1"))[1:] == list(written[:2])


async def test_what_a_removed_run_still_writes_is_left_out_and_the_rest_kept(store: Store) -> None:
    gone, there = a_run("run_1", thread="t1"), a_run("run_2")
    await accept(store, there)
    batch = JournalBatch(
        runs=[replace(gone, status="done"), a_child(gone, "run_3")],
        steps=[a_step(gone), a_step(there)],
        events=[an_event(gone, 1), an_event(there, 1)],
        messages=[a_message("Late.", run="run_1")],
    )
    (message,) = await store.runs.write(batch)
    assert message.number == 0
    assert await store.runs.list("local") == [there]
    assert await store.runs.steps("local", "run_1") == []
    assert await store.runs.events("local", "run_1") == []
    assert await store.threads.messages("local", "owner", "t1") == []
    assert len(await store.runs.steps("local", "run_2")) == 1
    assert len(await store.runs.events("local", "run_2")) == 1


async def test_runs_of_another_workspace_are_not_found(store: Store) -> None:
    root = a_run(thread="t1", message=1)
    await accept(store, root)
    await accept(store, a_child(root, "run_2"))
    await store.runs.write(JournalBatch(steps=[a_step(root)], events=[an_event(root, 1)]))
    await store.runs.write(JournalBatch(steps=[replace(a_step(root), workspace="other")]))
    assert await store.runs.find("other", "run_1") is None
    assert await store.runs.list("other") == []
    assert await store.runs.family("other", "run_1") == []
    assert await store.runs.child("other", "run_1", "1:call_a") is None
    assert await store.runs.steps("other", "run_1") == []
    assert await store.runs.events("other", "run_1") == []
    assert await store.runs.last_event("other", "run_1") == 0
    assert await store.runs.roots_after("other", "owner", "t1", 0) == []
    assert not await store.runs.ask_cancel("other", "run_1")


async def test_families_of_no_thread_that_ended_long_ago_are_forgotten(store: Store) -> None:
    old = a_run("run_1", status="done", finished_at=NOON)
    recent = a_run("run_2", status="done", finished_at=LATER)
    working = a_run("run_3", created_at=NOON - timedelta(days=90))
    said = a_run("run_5", thread="t1", status="done", finished_at=NOON)
    await accept(store, said, a_message())
    others = a_run("run_6", workspace="other", status="done", finished_at=NOON)
    for run in (old, recent, working, others, a_child(old, "run_4", status="done", finished_at=NOON)):
        await accept(store, run)
    steps = [a_step(old), a_step(a_child(old, "run_4")), a_step(recent)]
    await store.runs.write(JournalBatch(steps=steps, events=[an_event(old, 1)]))
    assert await store.runs.forget("local", LATER) == 1
    assert {run.id for run in await store.runs.list("local")} == {"run_2", "run_3", "run_5"}
    assert len(await store.runs.list("other")) == 1
    assert await store.runs.steps("local", "run_1") == []
    assert await store.runs.steps("local", "run_4") == []
    assert await store.runs.events("local", "run_1") == []
    assert len(await store.runs.steps("local", "run_2")) == 1
    assert len(await store.threads.messages("local", "owner", "t1")) == 1


async def test_many_runs_are_accepted_together_one_begins_in_each_thread(store: Store) -> None:
    await store.threads.add_message(a_message("before", thread="t1"))
    places = ["t1", "t2", "t1"]
    new = [
        NewRun(
            a_run(f"run_{at}", thread=place),
            a_message(f"m{at}", run=f"run_{at}", thread=place),
            (),
            "w",
            LATER,
        )
        for at, place in enumerate(places)
    ]
    accepted = await store.runs.accept([*new, NewRun(a_run("run_9"), worker="w", until=LATER)])
    assert [one.run.message for one in accepted] == [2, 1, 3, None]
    assert [one.run.worker for one in accepted] == ["w", "w", None, "w"]
    for one in accepted:
        assert await store.runs.find("local", one.run.id) == one.run
    later = await accept(store, a_run("run_5", thread="t2"), a_message(thread="t2"), worker="w", until=LATER)
    assert later.run.worker is None


async def test_of_many_runs_all_are_written_or_none(store: Store) -> None:
    await accept(store, a_run("run_2"))
    with pytest.raises(Conflict):
        await store.runs.accept([NewRun(a_run("run_1"), a_message()), NewRun(a_run("run_2"))])
    assert await store.runs.find("local", "run_1") is None
    assert await store.threads.messages("local", "owner", "t1") == []


async def test_a_thread_that_a_run_begins_is_written_as_by_itself_or_with_nothing_of_it(store: Store) -> None:
    def entry(thread: str) -> AuditEntry:
        return AuditEntry(
            time=NOON,
            workspace="local",
            user="owner",
            agent=None,
            way="direct",
            action="thread.created",
            subject=thread,
            outcome="ok",
            details={"connectors": None},
        )

    by_itself, begun = (Thread(id=name, workspace="local", user="owner", title="t") for name in ("t1", "t2"))
    await store.threads.put(by_itself)
    await store.audit.append([entry("t1")])
    await accept(store, a_run("run_1", thread="t1"), a_message(run="run_1", thread="t1"))
    message = a_message(run="run_2", thread="t2")
    new = NewRun(a_run("run_2", thread="t2"), message, (), "w", LATER, BegunThread(begun, entry("t2")))
    (accepted,) = await store.runs.accept([new])
    assert (accepted.run.message, accepted.run.worker) == (1, "w")

    first, second = [await store.threads.find("local", "owner", name) for name in ("t1", "t2")]
    assert first is not None
    assert second is not None
    assert replace(second, id="t1", created_at=first.created_at) == first
    trail = await store.audit.read("local")
    assert [(one.number, one.subject, one.details) for one in trail] == [
        (1, "t1", {"connectors": None}),
        (2, "t2", {"connectors": None}),
    ]
    assert verify(trail, await store.audit.anchor("local")).is_whole

    again = NewRun(a_run("run_3"), None, (), None, None, BegunThread(begun, entry("t2")))
    other = Thread(id="t3", workspace="local", user="owner", title="t")
    with pytest.raises(Conflict):
        await store.runs.accept([NewRun(a_run("run_4"), begun=BegunThread(other, entry("t3"))), again])
    assert await store.threads.find("local", "owner", "t3") is None
    assert await store.runs.find("local", "run_4") is None
    assert len(await store.audit.read("local")) == 2
