"""Runs as the store lists them: by time, length and cost, a page after the other, with an index for each."""

from datetime import timedelta
from typing import get_args

import pytest
from run_values import a_run, accept
from sqlalchemy import select, text
from store_values import NOON

from dragoman.run import RunSort, RunUsage
from dragoman.store import Store
from dragoman.store.database import open_database
from dragoman.store.location import DatabaseLocation
from dragoman.store.run_figures import FIGURES, has_status
from dragoman.store.tables import runs

pytestmark = pytest.mark.anyio


async def fill(store: Store) -> None:
    # Minutes after noon, seconds it took (None: it goes on), cost.
    facts = [(0, 5.25, 0.5), (1, 70.0, 0.0), (2, 5.25, 0.125), (3, None, 0.0), (3, None, 0.5), (4, 0.0, 0.0)]
    for number, (minutes, seconds, cost) in enumerate(facts):
        begin = NOON + timedelta(minutes=minutes)
        end = None if seconds is None else begin + timedelta(seconds=seconds)
        run = a_run(f"run_{number}", created_at=begin, started_at=begin, finished_at=end,
                    status="running" if end is None else "done", usage=RunUsage(cost=cost))  # fmt: skip
        await accept(store, run)
    await accept(store, a_run("run_9", user="bob", created_at=NOON))
    await accept(store, a_run("run_9", workspace="other"))


async def test_pages_of_every_order_follow_each_other_without_a_gap(store: Store) -> None:
    await fill(store)
    expected = {"newest": "534210", "longest": "120534", "costliest": "402531"}
    assert {*expected} == {*get_args(RunSort)}
    for sort in get_args(RunSort):
        whole = await store.runs.list("local", "owner", sort=sort)
        assert "".join(run.id[-1] for run in whole) == expected[sort], sort
        pages = await store.runs.list("local", "owner", sort=sort, limit=1)
        while page := await store.runs.list("local", "owner", sort=sort, after=pages[-1].id, limit=2):
            pages = [*pages, *page]
        assert pages == whole
        assert len(await store.runs.list("local", sort=sort, words="what")) == 7
        assert [*await store.runs.list("local", "owner", sort=sort, words="what", among=2)] == whole[:2]
    assert await store.runs.list("local", "owner", sort="longest", after="run_7") == []


async def test_each_order_and_rare_status_has_an_index_that_lists_use(database_url: str) -> None:
    location = DatabaseLocation.of(database_url)
    asked = {
        f"ix_runs_{sort}": select(runs.c.id)
        .where(runs.c.workspace == "local")
        .order_by(FIGURES[sort](runs).desc(), runs.c.created_at.desc())
        for sort in ("longest", "costliest")
    }
    rare = (runs.c.workspace == "local", runs.c.user == "owner", has_status(runs, "failed"))
    asked["ix_runs_not_done"] = select(runs).where(*rare).order_by(runs.c.created_at.desc(), runs.c.id)
    async with open_database(location, 5.0) as database, database.read() as connection:
        if not location.is_sqlite:  # which would rather sort so few rows, or read them all
            await connection.execute(text("SET LOCAL enable_sort = off"))
            await connection.execute(text("SET LOCAL enable_seqscan = off"))
        for index, query in asked.items():
            how = "EXPLAIN QUERY PLAN" if location.is_sqlite else "EXPLAIN"
            statement = query.limit(5).compile(connection.sync_engine, compile_kwargs={"literal_binds": True})
            plan = await connection.execute(text(f"{how} {statement}"))
            assert index in " ".join(str(row) for row in plan)


async def test_runs_of_every_status_are_listed_in_every_order(store: Store) -> None:
    await fill(store)
    for sort in get_args(RunSort):
        done = await store.runs.list("local", "owner", sort=sort, status="done")
        assert {run.id for run in done} == {"run_0", "run_1", "run_2", "run_5"}
        [first, second] = await store.runs.list("local", "owner", sort=sort, status="running")
        assert {first.id, second.id} == {"run_3", "run_4"}
        after = await store.runs.list("local", "owner", sort=sort, status="running", after=first.id)
        assert [run.id for run in after] == [second.id]
        assert not await store.runs.list("local", "owner", sort=sort, status="failed")
