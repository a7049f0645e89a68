"""Runs that wait, are left and taken up again: questions, approvals, streams, in this process or another."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from cluster.nodes import alone
from dragoman import Hub
from dragoman.errors import NobodyAnswered
from dragoman.run import Run, RunEvent
from dragoman.runs.questions import RunQuestions
from dragoman.runs.workers import Worker
from dragoman.store import Store, open_store
from dragoman.store.records import JournalBatch, NewRun
from dragoman.tool import Annotations
from patience import deadline, patient
from runs.scripted import by_request, model_of, open_scripted, situation
from servers.hubs import QUICK, open_hub, quick, runtime_of, until
from servers.processes import HttpProcess, journal, stdio

pytestmark = pytest.mark.anyio
MODEL = by_request(
    ask=model_of(["One thing first. ", ("ask_person", {"question": "Which one?"})]),
    send=model_of(("mcp_a_send", {"text": "x"})),
    talk=model_of("hello"),
)


async def asked(hub: Hub) -> bool:
    return bool(await hub.runs.questions() or await hub.approvals.list())


async def told(hub: Hub, run: Run, after: int = 0) -> list[RunEvent]:
    return [event async for event in hub.runs.follow(run.id, after)]


async def test_a_question_survives_a_restart_and_is_asked_once(tmp_path: Path, database_url: str) -> None:
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        run = (await hub.messages.post("ask")).run
        await until(lambda: asked(hub), within=15)
        (question,) = await hub.runs.questions()
    async with open_store(database_url) as store:
        left = await store.runs.find(run.workspace, run.id)
        assert left is not None
        assert (left.status, left.worker) == ("waiting", None)
        told_before = await store.runs.events(run.workspace, run.id)
        assert told_before[-1].kind == "run.waiting"
        assert left.started_at is not None
        long_ago = replace(left, started_at=left.started_at - timedelta(hours=1))
        await store.runs.write(JournalBatch(runs=[long_ago]))
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        follower = asyncio.ensure_future(told(hub, run))
        await until(lambda: _is(hub, run, "waiting"), within=15)
        answered = await hub.messages.post("the second", thread=run.thread)
        assert answered.run.id == run.id
        assert (await hub.runs.finished(run)).answer == '["the second"]'
        assert [one.id for one in await hub.runs.questions(status=None)] == [question.id]
        events = await follower
        kinds = [event.kind for event in events]
        assert kinds.count("run.resumed") == 1, kinds
        assert kinds.count("run.finished") == 1
        worked = (await hub.agents.view(run.agent)).numbers
        assert 0 < worked.milliseconds < 1800_000, "an hour of waiting is no latency"
        # From any number on the rest is the same, live or from disk.
        for event in events[:-1]:
            rest = await told(hub, run, event.number)
            assert [one.number for one in rest] == [one.number for one in events if one.number > event.number]


async def test_what_waits_for_an_answer_is_gone_on_with_once_it_is_given(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        run, other = [(await hub.messages.post("ask")).run for _ in range(2)]
        await until(lambda: _count(hub, 2), within=15)
    for _ in range(2):
        async with open_scripted(tmp_path, MODEL, database_url) as hub:
            await _until_held(hub, run, other)
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        follower = asyncio.ensure_future(told(hub, run))
        await _until_held(hub, run, other)
        assert {one.status for one in await hub.runs.list(limit=2)} == {"waiting"}
        await hub.runs.cancel(other.id)
        async with deadline(3):
            assert (await hub.runs.finished(other)).status == "cancelled"
        (question,) = await hub.runs.questions()
        await hub.runs.answer(question.id, "this")
        async with deadline(3):
            assert (await hub.runs.finished(run)).answer == '["this"]'
            events = await follower
        kinds = [event.kind for event in events]
        assert kinds.count("question.asked") == kinds.count("run.resumed") == 1, kinds
        assert [event.number for event in events] == [*range(1, len(events) + 1)]


async def test_words_that_were_interrupted_after_a_call_are_discarded_before_they_come_again(
    tmp_path: Path,
) -> None:
    is_interrupted = True

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if situation(messages)[0] == 0:
            yield {0: DeltaToolCall("mcp_a_echo", '{"text": "x"}', tool_call_id="c0")}
            return
        yield "All is "
        if is_interrupted:
            await asyncio.Event().wait()
        yield "well."

    model = FunctionModel(stream_function=answer)
    async with open_scripted(tmp_path, model) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        run = (await hub.messages.post("how is it?")).run
        async for event in hub.runs.follow(run.id):
            if event.kind == "text":
                break
    is_interrupted = False
    async with open_scripted(tmp_path, model) as hub:
        await hub.open_engine()
        heard = [event for event in await told(hub, run) if "turn" in event.data]
        void = [event.kind for event in heard].index("text.discarded")
        said = ["".join(event.data["delta"] for event in some) for some in (heard[:void], heard[void + 1 :])]
        assert said == ["All is ", "All is well."]
        assert {event.data["turn"] for event in heard} == {2}


async def test_an_approval_survives_a_restart_and_is_used_once(tmp_path: Path, database_url: str) -> None:
    file = tmp_path / "journal"
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        await hub.connectors.add("a", **stdio("--journal", str(file)), **QUICK)
        run = (await hub.messages.post("send")).run
        await until(lambda: asked(hub), within=15)
        (question,) = await hub.approvals.list()
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        await until(lambda: _is(hub, run, "waiting"), within=15)
        await hub.approvals.answer(question.approval.id, "once")
        assert (await hub.runs.finished(run)).answer == '["sent x"]'
        assert [one.status for one in await hub.approvals.list(None)] == ["used"]
        assert journal(file) == ["x"]


async def test_an_answer_given_in_another_process_is_heard(tmp_path: Path, database_url: str) -> None:
    async with (
        open_scripted(tmp_path, MODEL, database_url) as hub,
        open_scripted(tmp_path, MODEL, database_url) as other,
    ):
        run = (await hub.messages.post("ask")).run
        follower = asyncio.ensure_future(told(other, run))
        await until(lambda: asked(other), within=15)
        (question,) = await other.runs.questions()
        await other.runs.answer(question.id, "that")
        async with deadline(3):
            assert (await hub.runs.finished(run)).answer == '["that"]'
            assert [event.number for event in await follower] == [
                event.number for event in await told(hub, run)
            ]


async def test_what_nobody_answers_expires_and_the_run_goes_on(tmp_path: Path, database_url: str) -> None:
    file = tmp_path / "journal"
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        await hub.connectors.add("a", **stdio("--journal", str(file)), **QUICK)
        runs = [(await hub.messages.post(word)).run for word in ("ask", "send")]
        await until(lambda: _count(hub, 2), within=15)
        long_after = datetime.now(UTC) + timedelta(days=2)
        async with open_store(hub.settings.store_url) as store:
            await store.runs.expire_questions(long_after)
            await store.approvals.expire(long_after)
        first, second = [await hub.runs.finished(run) for run in runs]
        assert (first.status, second.status) == ("done", "done")
        assert "nobody answered" in (first.answer or "")
        assert "approval_pending" in (second.answer or "")
        assert journal(file) == []


async def test_a_question_has_a_time(database_url: str) -> None:
    async with open_store(database_url) as store:
        questions = RunQuestions(store.runs, alone(), lasts=timedelta(seconds=0.2))
        run = Run(id="r", root="r", workspace="w", user="u", thread="t", agent="a", request="?")
        await store.runs.accept([NewRun(run)])
        question = await questions.ask(run, "f1:c", "Which?", None)
        assert (await questions.ask(run, "f1:c", "Which?", None)).id == question.id
        async with deadline(2):
            with pytest.raises(NobodyAnswered):
                await questions.answered(question)


async def test_a_question_that_nobody_answered_in_time_waits_for_nobody(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        async with open_store(hub.settings.store_url) as store:
            run = Run(id="r", root="r", workspace="local", user="owner", thread="t", agent="a", request="?")
            questions = RunQuestions(store.runs, alone(), lasts=timedelta(seconds=-1))
            question = await questions.ask(run, "f1:c", "Which?", None)
        await runtime_of(hub).tidy()
        assert (await hub.runs.question(question.id)).status == "expired"
        assert await hub.runs.questions() == []


async def test_a_thread_has_one_run_at_a_time_in_order_and_its_own_answer_is_no_new_one(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scripted(tmp_path, MODEL, database_url) as hub:
        first = (await hub.messages.post("ask")).run
        await until(lambda: asked(hub), within=15)
        later = [(await hub.messages.post("talk", thread=first.thread, agent="assistant")).run for _ in "ab"]
        other = await hub.ask("talk")
        assert other.answer == "hello"
        assert [(await hub.runs.get(run.id)).status for run in later] == ["queued", "queued"]
        await hub.messages.post("this", thread=first.thread)
        ended = [await hub.runs.finished(run) for run in (first, *later)]
        for one, two in pairwise(ended):
            assert one.finished_at is not None
            assert two.started_at is not None
            assert one.finished_at <= two.started_at


async def test_two_who_follow_hear_the_same(tmp_path: Path) -> None:
    words = [f"word{number} " for number in range(200)]

    async def talks(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for word in words:
            yield word
            await asyncio.sleep(0.001)

    async with open_scripted(tmp_path, FunctionModel(stream_function=talks)) as hub:
        run = (await hub.messages.post("go")).run
        one, two = await asyncio.gather(told(hub, run), told(hub, run))
        assert [event.number for event in one] == [event.number for event in two]
        text = "".join(event.data["delta"] for event in one if event.kind == "text")
        assert text == "".join(words)
        assert [event.number for event in await told(hub, run)] == [event.number for event in one]


async def test_what_a_tool_asks_for_becomes_a_question(tmp_path: Path) -> None:
    model = model_of(("mcp_asking_greet", {}))
    with HttpProcess(tmp_path, program="asking_server.py") as server:
        async with open_scripted(tmp_path, model) as hub:
            await hub.connectors.add("asking", url=server.url, **quick(request_timeout=patient(20)))
            run = (await hub.messages.post("greet")).run
            await until(lambda: asked(hub), within=15)
            (question,) = await hub.runs.questions()
            assert question.text == "What is your name?"
            assert question.fields is not None
            assert [*question.fields["properties"]] == ["name"]
            await hub.runs.answer(question.id, {"name": "Ada"})
            ended = await hub.runs.finished(run)
            assert "Hello, Ada!" in (ended.answer or "")


async def test_a_call_that_left_and_was_left_is_uncertain(tmp_path: Path, database_url: str) -> None:
    """Also where the process ends in order: nobody waited for the answer."""
    model = model_of([("slowly", {"text": "a"}), ("safely", {"text": "b"})])
    made: list[str] = []

    def add_tools(hub: Hub, gate: asyncio.Event) -> None:
        async def work(text: str) -> str:
            made.append(text)
            await gate.wait()
            return f"did {text}"

        hub.add_tool(work, name="slowly", annotations=Annotations(read_only=False, destructive=False))
        hub.add_tool(work, name="safely", annotations=Annotations(read_only=True))

    async with open_scripted(tmp_path, model, database_url) as hub:
        add_tools(hub, asyncio.Event())
        await hub.tools.configure("slowly", approval="never")
        run = (await hub.messages.post("go")).run
        await until(lambda: len(made) == 2, within=15)
    async with open_scripted(tmp_path, model, database_url) as hub:
        gate = asyncio.Event()
        gate.set()
        add_tools(hub, gate)
        ended = await hub.runs.finished(run)
        assert sorted(made) == ["a", "b", "b"]
        assert "not known whether" in (ended.answer or "")
        assert "did b" in (ended.answer or "")


@pytest.mark.timeout(240)
async def test_what_was_left_under_a_lease_of_an_hour_is_taken_up_when_a_lease_is_over(
    tmp_path: Path, database_url: str
) -> None:
    """The clock stood an hour ahead when it was leased, and was set back."""
    async with open_scripted(tmp_path, MODEL, database_url) as hub, open_store(database_url) as store:
        engine = await hub.open_engine()
        run = (await hub.messages.post("ask")).run
        await until(lambda: asked(hub), within=15)

        async def is_given(old: str, new: str) -> bool:
            now = store.clock.now()
            given = await store.runs.claim(new, now + timedelta(hours=1), now, dead=[old])
            return [one.id for one in given] == [run.id]  # not while somebody writes it

        await until(lambda: is_given(engine.worker, "another process"), within=15)
        await until(lambda: run.id not in engine.held, within=15)
        await until(lambda: is_given("another process", engine.worker), within=15)
        await until(lambda: run.id in engine.held, within=30)
        await hub.messages.post("the second", thread=run.thread)
        assert (await hub.runs.finished(run)).answer == '["the second"]'


async def test_a_worker_process_takes_over_what_a_killed_one_left(tmp_path: Path, postgres_url: str) -> None:
    program = Path(__file__).parent / "worker_program.py"

    def start(name: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, str(program), str(tmp_path), postgres_url, str(tmp_path / name)]
        return subprocess.Popen(words)

    workers = [start("one"), start("two")]
    try:
        await until(lambda: all((tmp_path / name).exists() for name in ("one", "two")), within=90)
        async with open_store(postgres_url) as store:
            for number in range(12):
                await store.runs.accept([NewRun(_of_nobody(f"r{number}", f"work {number}"))])
            await until(lambda: _all_begun(tmp_path), within=30)
            holder = next(iter(await store.runs.holders()))
            leases = {run.id: run.lease_until for run in await store.runs.list("local")}
            victim = Worker.find(holder)
            assert victim is not None
            os.kill(victim.pid, signal.SIGKILL)
            await until(lambda: _all_done(store), within=25)
            for number in range(12):
                run = await store.runs.find("local", f"r{number}")
                assert run is not None
                assert run.answer == f'["worked {number}"]'
                executed = (tmp_path / f"work{number}").read_text().split()
                events = await store.runs.events("local", run.id)
                kinds = [event.kind for event in events]
                lease = leases[run.id]
                for event in events:  # the dead are found before their leases are over
                    assert event.kind != "run.resumed" or (lease is not None and event.time < lease)
                assert (kinds.count("run.started"), kinds.count("run.finished")) == (1, 1)
                # The call only reads: it is made again where its end was not on disk, and nowhere else.
                assert executed.count("began") == 1 + kinds.count("run.resumed")
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _all_begun(folder: Path) -> bool:
    return all((folder / f"work{number}").exists() for number in range(12))


def _of_nobody(name: str, request: str) -> Run:
    """Accepted by a process that executes nothing."""
    facts: dict[str, Any] = {"workspace": "local", "user": "owner", "thread": "", "agent": "assistant"}
    return Run(id=name, root=name, request=request, **facts)


async def _all_done(store: Store) -> bool:
    found = [await store.runs.find("local", f"r{number}") for number in range(12)]
    return all(run is not None and run.status == "done" for run in found)


async def _until_held(hub: Hub, *runs: Run) -> None:
    dispatch, wanted = await hub.open_engine(), frozenset(run.id for run in runs)
    await until(lambda: dispatch.held == wanted and not dispatch.at_work, within=15)


async def _is(hub: Hub, run: Run, status: str) -> bool:
    return (await hub.runs.get(run.id)).status == status


async def _count(hub: Hub, number: int) -> bool:
    return len(await hub.runs.questions()) + len(await hub.approvals.list()) == number
