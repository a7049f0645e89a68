"""Runs that come at the same time are written and begun together, and nobody pays for another's fault."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dragoman.background_tasks import BackgroundTasks
from dragoman.errors import Conflict
from dragoman.run import Run, new_run_id
from dragoman.runs.dispatch import RunAcceptance
from dragoman.store import open_store
from dragoman.store.records import NewRun
from runs.scripted import open_scripted

pytestmark = pytest.mark.anyio


def _new(run_id: str | None = None) -> NewRun:
    run_id = run_id or new_run_id()
    return NewRun(
        Run(
            id=run_id, root=run_id, workspace="local", user="owner", thread="", agent="assistant", request="x"
        )
    )


async def test_who_comes_together_is_written_together_and_a_fault_is_told_to_its_own(
    database_url: str, tmp_path: Path
) -> None:
    async with open_store(database_url) as store, BackgroundTasks() as tasks:
        sizes: list[int] = []
        written = store.runs.accept

        async def counted(new: list[NewRun]) -> object:
            sizes.append(len(new))
            return await written(new)

        store.runs.accept = counted  # pyright: ignore[reportAttributeAccessIssue]
        acceptances = RunAcceptance(store.runs, tasks)
        there = (await acceptances.accept(_new())).run.id
        found = await asyncio.gather(
            *(acceptances.accept(_new()) for _ in range(20)),
            acceptances.accept(_new(there)),
            return_exceptions=True,
        )
        assert isinstance(found[-1], Conflict)
        accepted = [one for one in found if not isinstance(one, BaseException)]
        assert len(accepted) == 20
        for one in accepted:
            assert await store.runs.find("local", one.run.id)
        assert sizes[:2] == [1, 21], "written one by one"
        await acceptances.accept(_new())


async def test_of_many_that_begin_at_once_nearly_each_is_told_before_it_works(tmp_path: Path) -> None:
    begun, untold = set[str](), list[str]()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked = messages[-1].parts[-1]
        assert isinstance(asked, UserPromptPart)
        if asked.content not in begun:
            untold.append(str(asked.content))
        yield "done"

    async with open_scripted(tmp_path, FunctionModel(stream_function=answer)) as hub:
        await hub.ask("first")
        threads = [(await hub.threads.create()).thread.id for _ in range(40)]
        untold.clear()

        async def one(thread: str) -> None:
            run = (await hub.messages.post(thread, thread=thread)).run
            async for event in hub.runs.follow(run.id):
                if event.kind == "run.started":
                    begun.add(thread)

        await asyncio.gather(*map(one, threads))
    assert begun == {*threads}
    assert len(untold) <= 10, untold
