"""Agents, runs, messages and questions to store, with what a test does not care about filled in.

And how one run is accepted, and what an agent did is counted, for tests that care about one at a time.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from store_values import NOON

from dragoman.agent import Agent, AgentNumbers
from dragoman.run import Message, Question, Run, RunEvent, Step
from dragoman.store import Store
from dragoman.store.records import AcceptedRun, AgentWorked, JournalBatch, NewRun, RolloutSample

LATER = NOON + timedelta(minutes=1)


def an_agent(name: str = "clerk", **facts: Any) -> Agent:
    defaults: dict[str, Any] = {
        "id": f"agent_{name}",
        "workspace": "local",
        "name": name,
        "kind": "worker",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Agent(**(defaults | facts))


def a_run(id: str = "run_1", **facts: Any) -> Run:
    defaults: dict[str, Any] = {
        "id": id,
        "workspace": "local",
        "user": "owner",
        "thread": "",
        "root": id,
        "agent": "assistant",
        "request": "What time is it?",
        "created_at": NOON,
    }
    return Run(**(defaults | facts))


def a_child(parent: Run, id: str, call: str = "1:call_a", **facts: Any) -> Run:
    shared = {"workspace": parent.workspace, "user": parent.user, "thread": parent.thread}
    return a_run(id, root=parent.root, parent=parent.id, parent_call=call, **(shared | facts))


def a_message(text: str = "What time is it?", **facts: Any) -> Message:
    defaults: dict[str, Any] = {
        "workspace": "local",
        "user": "owner",
        "thread": "t1",
        "author": "person",
        "text": text,
        "created_at": NOON,
    }
    return Message(**(defaults | facts))


def a_step(run: Run, content: Any = None, **facts: Any) -> Step:
    defaults: dict[str, Any] = {"kind": "note", "time": NOON}
    return Step(workspace=run.workspace, run=run.id, content=content, **(defaults | facts))


def an_event(run: Run, number: int, **facts: Any) -> RunEvent:
    defaults: dict[str, Any] = {"kind": "text", "time": NOON}
    return RunEvent(workspace=run.workspace, root=run.root, run=run.id, number=number, **(defaults | facts))


def a_question(run: Run, id: str = "q1", **facts: Any) -> Question:
    defaults: dict[str, Any] = {
        "workspace": run.workspace,
        "user": run.user,
        "thread": run.thread,
        "run": run.id,
        "root": run.root,
        "key": "1:call_a",
        "agent": "assistant",
        "text": "Which city?",
        "created_at": NOON,
        "expires_at": LATER,
    }
    return Question(id=id, **(defaults | facts))


def a_sample(run: str = "run_1", **facts: Any) -> RolloutSample:
    defaults: dict[str, Any] = {
        "workspace": "local",
        "user": "owner",
        "arm": "code",
        "ok": True,
        "milliseconds": 12.5,
        "tokens": 3_000_000_000,
        "cost": 0.25,
        "at": NOON,
    }
    return RolloutSample(run=run, **(defaults | facts))


async def accept(
    store: Store,
    run: Run,
    message: Message | None = None,
    events: Sequence[RunEvent] = (),
    *,
    worker: str | None = None,
    until: datetime | None = None,
) -> AcceptedRun:
    (accepted,) = await store.runs.accept([NewRun(run, message, events, worker, until)])
    return accepted


async def add_numbers(store: Store, run: Run, agent: str, numbers: AgentNumbers) -> None:
    worked = AgentWorked(workspace=run.workspace, run=run.id, agent=agent, numbers=numbers)
    await store.runs.write(JournalBatch(worked=[worked]))
