"""What executes runs is watched: a fault is said and survived, or the process says so and ends."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cluster.processes import ServiceProcess
from dragoman.run import Run
from dragoman.store import open_store
from dragoman.store.records import NewRun
from migrated import put_sqlite
from patience import patient, until

pytestmark = [pytest.mark.anyio, pytest.mark.fault]


async def _leave_unreadable_run(home: Path) -> None:
    """A run whose row nobody can read: who looks for work meets a fault that is none of our errors."""
    put_sqlite(home / "dragoman.db")
    async with open_store(f"sqlite:///{home / 'dragoman.db'}") as store:
        run = Run(
            id="left",
            root="left",
            request="hi",
            workspace="local",
            user="owner",
            thread="",
            agent="assistant",
        )
        await store.runs.accept([NewRun(run)])
    _set_limits(home, '"nonsense"')


def _set_limits(home: Path, text: str) -> None:
    with closing(sqlite3.connect(home / "dragoman.db", timeout=patient(10))) as connection, connection:
        connection.execute("UPDATE runs SET limits = ?", [text])


async def test_a_service_that_cannot_execute_runs_says_so_and_ends(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await _leave_unreadable_run(home)
    with ServiceProcess(home, vital_patience=1) as service:
        assert service.get("/ready")[0] == 200
        await until(lambda: service.get("/ready")[0] == 503, within=30)
        assert service.get("/health")[0] == 200
        assert service.ended() == 1
        assert service.log.count("background.failed") > 1  # tried again, and said each time
        *_, last = service.log.strip().splitlines()
        assert last.startswith(
            "error: this process cannot go on: 'execute runs' has ended for good (AttributeError)"
        )


async def test_a_fault_that_passes_costs_no_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await _leave_unreadable_run(home)
    with ServiceProcess(home, vital_patience=patient(60)) as service:
        await until(lambda: service.log.count("background.failed") > 1, within=30)
        assert service.get("/ready")[0] == 200
        _set_limits(home, "{}")

        async def is_done() -> bool:
            async with open_store(f"sqlite:///{home / 'dragoman.db'}") as store:
                run = await store.runs.find("local", "left")
                return run is not None and run.is_finished

        await until(is_done, within=20)
        assert service.get("/ready")[0] == 200
