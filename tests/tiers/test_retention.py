"""What a workspace keeps for less time than the installation is deleted there, and nowhere else."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.errors import Denied
from dragoman.people import Thread
from dragoman.run import Message, Run, RunStatus
from dragoman.store.records import KeptResult, NewRun
from servers.hubs import runtime_of
from tiers.people import ADA, NORA, SAM, open_team

pytestmark = pytest.mark.anyio
NOW = datetime.now(UTC)


async def add_chat(
    hub: Hub, whose: Caller, name: str, days: int, status: RunStatus = "done", **facts: Any
) -> None:
    """One that was written in so many days ago, with a run; and a run of no chat, and a large result."""
    store, then = runtime_of(hub).store, NOW - timedelta(days=days)
    place: Any = {"workspace": whose.workspace, "user": whose.user}
    thread = Thread(id=name, **place, title=name, created_at=then, updated_at=then, **facts)
    await store.threads.put(thread)
    for run, chat in ((f"run_{name}", name), (f"loose_{name}", "")):
        told = Run(id=run, root=run, thread=chat, agent="assistant", request="look", status=status, **place,
                   created_at=then, finished_at=None if status == "running" else then)  # fmt: skip
        said = Message(**place, thread=chat, author="person", text="look", run=run, created_at=then)
        await store.runs.accept([NewRun(run=told, message=said if chat else None)])
    result = KeptResult(handle=name, **place, tool="t", content_type="text/plain", body=b"x", created_at=then)
    await store.calls.keep_result(result)


async def left(hub: Hub, whose: Caller) -> tuple[set[str], set[str], set[str]]:
    store, own = runtime_of(hub).store, hub.acting_for(whose)
    chats = {one.thread.id for one in await own.threads.list()}
    runs = {one.id for one in await own.runs.list()}
    kept = {one for one in ("new", "old", "pinned", "works")
            if await store.calls.find_result(whose.workspace, whose.user, one)}  # fmt: skip
    return chats, runs, kept


async def test_what_is_older_than_a_workspace_keeps_it_is_deleted_there_alone(
    tmp_path: Path, database_url: str
) -> None:
    async with open_team(tmp_path, database_url, keep_results_days=60) as hub:
        for whose in (ADA, SAM):
            await add_chat(hub, whose, "new", 5)
            await add_chat(hub, whose, "old", 40)
            await add_chat(hub, whose, "pinned", 40, pinned=True)
            await add_chat(hub, whose, "works", 40, status="running")
        before = await left(hub, SAM)
        await runtime_of(hub).tidy()
        assert await left(hub, ADA) == await left(hub, SAM) == before  # nobody said anything yet

        with pytest.raises(Denied):
            await hub.acting_for(ADA).people.update_workspace("north", keep_chats_days=30)
        await hub.acting_for(NORA).people.update_workspace("north", keep_chats_days=30, keep_results_days=30)
        await runtime_of(hub).tidy()
        chats, runs, results = await left(hub, ADA)
        assert chats == {"new", "pinned", "works"}
        assert runs == {"run_new", "loose_new", "run_pinned", "run_works", "loose_works"}
        assert results == {"new"}
        assert await runtime_of(hub).store.threads.messages("north", "ada", "old") == []
        assert await left(hub, SAM) == before
        (noted,) = await hub.acting_for(NORA).audit.list(action="retention.applied")
        assert noted.details == {"threads": 1, "runs": 2, "days": 30}
