"""What goes along with a thread, a user and a workspace, and what stays."""

import asyncio
from collections.abc import Sequence

import pytest
from run_values import (
    a_child,
    a_message,
    a_question,
    a_run,
    a_sample,
    a_step,
    accept,
    add_numbers,
    an_agent,
    an_event,
)
from sqlalchemy import create_engine, func, select
from store_values import NOON

from dragoman.agent import AgentNumbers
from dragoman.people import Thread
from dragoman.run import Run
from dragoman.store import Store, tables
from dragoman.store.location import DatabaseLocation
from dragoman.store.records import JournalBatch

pytestmark = pytest.mark.anyio

_FAMILY = (tables.runs, tables.run_steps, tables.run_events, tables.questions)
_TABLES = (
    *_FAMILY,
    tables.messages,
    tables.agents,
    tables.agent_numbers,
    tables.rollout_samples,
)


def _counts(url: str) -> list[int]:
    engine = create_engine(DatabaseLocation.of(url).blocking_url)
    with engine.connect() as connection:
        counts = [connection.scalar(select(func.count()).select_from(table)) or 0 for table in _TABLES]
    engine.dispose()
    return counts


async def _fill(store: Store, id: str, workspace: str, user: str, thread: str) -> Run:
    root = a_run(id, workspace=workspace, user=user, thread=thread)
    child = a_child(root, f"{id}_child", thread="")
    await accept(store, root, a_message(workspace=workspace, user=user, thread=thread))
    await accept(store, child)
    await store.runs.write(JournalBatch(steps=[a_step(root), a_step(child)], events=[an_event(child, 1)]))
    await store.runs.ask(a_question(child, f"q_{id}"))
    await store.rollout.add(a_sample(id, workspace=workspace, user=user))
    agent = an_agent(id, workspace=workspace, owner=user)
    await store.agents.put(agent)
    await add_numbers(store, root, agent.id, AgentNumbers(runs=1))
    return root


async def _fill_all(store: Store) -> Sequence[Run]:
    return [
        await _fill(store, "run_1", "acme", "ann", "t1"),
        await _fill(store, "run_2", "acme", "ann", "t2"),
        await _fill(store, "run_3", "acme", "bob", "t1"),
        await _fill(store, "run_4", "other", "ann", "t1"),
    ]


async def test_a_thread_takes_its_messages_and_runs_along(store: Store, database_url: str) -> None:
    await _fill_all(store)
    assert _counts(database_url) == [8, 8, 4, 4, 4, 4, 4, 4]
    await store.threads.put(Thread(workspace="acme", user="ann", id="t1", created_at=NOON, updated_at=NOON))
    await store.threads.remove("acme", "ann", "t1")
    assert _counts(database_url) == [6, 6, 3, 3, 3, 4, 4, 4]
    assert await store.runs.find("acme", "run_1") is None
    assert await store.runs.find("acme", "run_1_child") is None
    assert await store.threads.messages("acme", "ann", "t1") == []


async def test_a_user_takes_agents_messages_runs_and_numbers_along(store: Store, database_url: str) -> None:
    bobs = (await _fill_all(store))[2]
    await store.agents.put(an_agent("shared", workspace="acme"))
    await add_numbers(store, bobs, "agent_shared", AgentNumbers(runs=1))
    await store.people.remove_user("acme", "ann")
    assert _counts(database_url) == [4, 4, 2, 2, 2, 3, 3, 2]
    assert {run.id for run in await store.runs.list("acme", roots_only=True)} == {"run_3"}
    assert set(await store.agents.numbers("acme")) == {"agent_run_3", "agent_shared"}


async def test_a_workspace_takes_all_of_it_along(store: Store, database_url: str) -> None:
    await _fill_all(store)
    await store.people.remove_workspace("acme")
    assert _counts(database_url) == [2, 2, 1, 1, 1, 1, 1, 1]
    assert await store.runs.list("acme") == []
    assert len(await store.runs.list("other")) == 2


async def test_a_thread_that_goes_while_its_runs_write_leaves_nothing(
    store: Store, database_url: str
) -> None:
    roots = [a_run(f"run_{number}", workspace="acme", user="ann", thread="t1") for number in range(8)]
    for root in roots:
        await accept(store, root)

    def work(number: int) -> JournalBatch:
        root = roots[number % 8]
        child = a_child(root, f"child_{number}")
        answer = a_message(workspace="acme", user="ann", thread="t1", run=root.id)
        return JournalBatch(
            runs=[child, *roots],
            steps=[a_step(child), *map(a_step, roots)],
            events=[an_event(root, number)],
            messages=[answer] if number % 3 == 0 else [],
        )

    writes = [store.runs.write(work(number)) for number in range(24)]
    await asyncio.gather(*writes[:12], store.threads.remove("acme", "ann", "t1"), *writes[12:])
    assert _counts(database_url) == [0] * 8
