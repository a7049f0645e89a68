import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from run_values import LATER, a_child, a_question, a_run, a_sample, a_step, accept, an_event
from store_values import NOON

from dragoman.errors import Outdated
from dragoman.store import Store, open_store
from dragoman.store.records import JournalBatch, RestingRun

pytestmark = pytest.mark.anyio

RUN = a_run(thread="t1")


async def test_a_question_comes_back_as_it_was(store: Store) -> None:
    question = a_question(RUN, fields={"type": "object", "properties": {}})
    assert await store.runs.ask(question) == question
    assert await store.runs.find_question("local", "owner", "q1") == question
    assert await store.runs.find_question("local", "bob", "q1") is None
    assert await store.runs.find_question("other", "owner", "q1") is None


async def test_a_question_asked_twice_is_one(store: Store, database_url: str) -> None:
    async with open_store(database_url) as other:
        asked = await asyncio.gather(
            *(one.runs.ask(a_question(RUN, f"q{number}")) for number, one in enumerate([store, other] * 4))
        )
    assert len({question.id for question in asked}) == 1
    assert await store.runs.questions("local", "owner") == [asked[0]]
    assert (await store.runs.ask(a_question(RUN, "q9", key="2:call_a"))).id == "q9"


async def test_a_question_that_was_answered_is_asked_again_with_its_answer(store: Store) -> None:
    await store.runs.ask(a_question(RUN))
    assert await store.runs.answer("local", "owner", "q1", {"city": "Rome"}, NOON)
    again = await store.runs.ask(a_question(RUN, "q2"))
    assert (again.id, again.status, again.answer, again.answered_at) == (
        "q1",
        "answered",
        {"city": "Rome"},
        NOON,
    )


async def test_only_an_open_question_is_answered_and_in_time(store: Store) -> None:
    await store.runs.ask(a_question(RUN))
    assert not await store.runs.answer("local", "owner", "q1", "Rome", LATER)
    assert not await store.runs.answer("local", "bob", "q1", "Rome", NOON)
    assert not await store.runs.answer("other", "owner", "q1", "Rome", NOON)
    answers = await asyncio.gather(
        *(store.runs.answer("local", "owner", "q1", city, NOON) for city in ("Rome", "Oslo", "Bern"))
    )
    assert sorted(answers) == [False, False, True]


async def test_questions_are_listed_newest_first_and_narrowed(store: Store) -> None:
    first = a_question(RUN)
    second = a_question(a_run("run_2"), "q2", created_at=LATER)
    for question in (first, second, a_question(a_run("run_3", user="bob"), "q3")):
        await store.runs.ask(question)
    assert await store.runs.questions("local", "owner") == [second, first]
    assert await store.runs.questions("local", "owner", limit=1) == [second]
    assert await store.runs.questions("local", "owner", thread="t1") == [first]
    assert await store.runs.questions("other", "owner") == []
    await store.runs.answer("local", "owner", "q1", "Rome", NOON)
    assert await store.runs.questions("local", "owner") == [second]
    assert len(await store.runs.questions("local", "owner", status=None)) == 2


async def test_a_run_that_ends_closes_its_open_questions(store: Store) -> None:
    for number, key in enumerate(("a", "b")):
        await store.runs.ask(a_question(RUN, f"q{number}", key=key))
    await store.runs.ask(a_question(a_run("run_2"), "q2"))
    await store.runs.answer("local", "owner", "q0", "Rome", NOON)
    await store.runs.close_questions("other", "run_1", "cancelled")
    await store.runs.close_questions("local", "run_1", "cancelled")
    found = await store.runs.questions("local", "owner", status=None)
    assert {question.id: question.status for question in found} == {
        "q0": "answered",
        "q1": "cancelled",
        "q2": "pending",
    }


async def test_a_run_rests_where_nothing_but_one_answer_is_missing(store: Store) -> None:
    """Each of the others differs by one thing from the first; the last two have come to rest again."""
    others = ["asked_by_server", "asked_twice", "child_asks", "child_works", "call_left"]
    names = ["alone", *others, "call_ended", "child_ended"]
    runs = {name: a_run(name) for name in [*names, "answered", "unasked"]}
    for run in runs.values():
        await accept(store, run)
    for name in [*names, "answered"]:
        await store.runs.ask(a_question(runs[name], name, connector="x" if name == "asked_by_server" else ""))
    await store.runs.ask(a_question(runs["asked_twice"], "q2", key="other"))
    await store.runs.answer("local", "owner", "answered", "Rome", NOON)
    for name, status in [("child_works", "waiting"), ("child_ended", "done")]:
        await accept(store, a_child(runs[name], f"{name}_1", status=status))
    asking = a_child(runs["child_asks"], "child_asks_1", status="waiting")
    await accept(store, asking)
    await store.runs.ask(a_question(asking, "q3"))
    left = [a_step(runs[name], kind="call.departed", key="1:b") for name in ("call_left", "call_ended")]
    ended = a_step(runs["call_ended"], kind="call.finished", key="1:b")
    await store.runs.write(JournalBatch(steps=[*left, ended], events=[an_event(runs["alone"], 7)]))
    found = await store.runs.resting([("local", name) for name in runs])
    assert sorted(found) == ["alone", "call_ended", "child_ended"]
    assert found["alone"] == RestingRun(a_question(runs["alone"], "alone"), 7)
    assert await store.runs.resting([("other", "alone")]) == {}
    assert await store.runs.resting([]) == {}


async def test_questions_expire_and_those_without_a_run_go(store: Store) -> None:
    await accept(store, RUN)
    await store.runs.ask(a_question(RUN))
    await store.runs.ask(a_question(a_run("run_2"), "q2"))
    await store.runs.expire_questions(NOON)
    assert len(await store.runs.questions("local", "owner")) == 2
    await store.runs.expire_questions(LATER)
    assert len(await store.runs.questions("local", "owner", status="expired")) == 2
    await store.runs.expire_questions(LATER + timedelta(days=31))
    found = await store.runs.questions("local", "owner", status=None)
    assert [question.id for question in found] == ["q1"]


async def test_the_state_of_a_rollout_is_replaced(store: Store) -> None:
    assert await store.rollout.state("code") is None
    await store.rollout.put_state("code", {"share": 0.1}, None)
    await store.rollout.put_state("code", {"share": 0.5, "arms": ["a"]}, {"share": 0.1})
    with pytest.raises(Outdated):
        await store.rollout.put_state("code", {"share": 0.2}, {"share": 0.1})
    assert await store.rollout.state("code") == {"share": 0.5, "arms": ["a"]}
    assert await store.rollout.state("other") is None


async def test_a_sample_is_counted_once_and_takes_a_thumb(store: Store) -> None:
    later = a_sample("run_2", at=LATER)
    for sample in (later, a_sample(), a_sample(ok=False)):
        await store.rollout.add(sample)
    assert await store.rollout.samples(NOON) == [a_sample(), later]
    assert await store.rollout.samples(LATER) == [later]
    assert await store.rollout.thumb("local", "run_1", -1)
    assert not await store.rollout.thumb("other", "run_1", -1)
    assert await store.rollout.samples(NOON) == [replace(a_sample(), thumb=-1), later]
    await store.rollout.forget(LATER)
    assert await store.rollout.samples(NOON) == [later]
