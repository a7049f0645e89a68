"""Whose runs may be taken: of the dead at once where it can be known, of others when their lease is over."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.processes import HERE, NodeProcess, can_unshare
from dragoman.run import Run
from dragoman.runs.dispatch import LEASE
from dragoman.runs.workers import Worker, dead_among
from dragoman.store import Store, open_store
from dragoman.store.records import NewRun
from patience import give_time, patient, until


def _process() -> "subprocess.Popen[str]":
    program = "from dragoman.runs.workers import Worker; print(Worker.of_this_process(), flush=True); input()"
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_who_was_killed_here_is_known_to_be_dead_and_nobody_else() -> None:
    with _process() as process:
        assert process.stdout is not None
        worker = Worker.find(process.stdout.readline().strip())
        assert worker is not None
        assert (worker.pid, worker.is_dead) == (process.pid, False)
        assert replace(worker, began="1").is_dead, "a later process with the same id"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert worker.is_dead, "also while nobody has waited for it"
        process.wait()
        assert dead_among([str(worker), str(Worker.of_this_process())]) == [str(worker)]
        host, boot, space = worker.place.split(":")
        for place in (
            f"other:{boot}:{space}",
            f"{host}:0123:{space}",
            f"{host}:{boot}:1",
            f"{host}:{boot}:-",
        ):
            assert not replace(worker, place=place).is_dead, place
        for text in (
            "",
            "worker",
            f"{host}:{worker.pid}:{worker.began}:0a1b",
            ":::",
            f"{worker.place}:x:1:y",
        ):
            assert dead_among([text]) == [], text


def _worker(name: str, folder: Path, url: str, **options: object) -> NodeProcess:
    words = [str(HERE / "worker_program.py"), name, str(folder), url]
    return NodeProcess(folder / name, words, **options)  # type: ignore[arg-type]


def _begun(folder: Path) -> list[str]:
    file = folder / "begun"
    return file.read_text().split() if file.exists() else []


async def _holder(store: Store) -> str | None:
    run = await store.runs.find("local", "left")
    return None if run is None or run.is_finished else run.worker


@pytest.mark.anyio
@pytest.mark.fault
@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(not can_unshare(), reason="the kernel gives no namespaces of our own")
@pytest.mark.parametrize(
    ("clock", "end"), [("+60s", signal.SIGKILL), ("-60s", signal.SIGSTOP)], ids=["ahead", "behind"]
)
async def test_a_live_run_elsewhere_is_left_alone_and_one_left_is_taken_within_its_lease(
    tmp_path: Path, postgres_url: str, clock: str, end: signal.Signals
) -> None:
    """The first has the same host name in another pid namespace, the second a wrong clock."""
    run = Run(
        id="left", root="left", request="go", workspace="local", user="owner", thread="", agent="assistant"
    )
    async with open_store(postgres_url) as store:
        await store.runs.accept([NewRun(run)])
        with ExitStack() as stack:
            one = stack.enter_context(_worker("one", tmp_path, postgres_url, is_apart=True))
            await until(lambda: _begun(tmp_path) == ["one"], within=60)
            two = stack.enter_context(_worker("two", tmp_path, postgres_url, clock=clock))
            await until(lambda: bool(two.output), within=60)
            await give_time(3)
            assert await _holder(store) == one.output.strip()
            assert _begun(tmp_path) == ["one"]
            one.signal(end)
            began = time.monotonic()
            await until(lambda: _begun(tmp_path) == ["one", "two"], within=LEASE.total_seconds() + 5)
            print(f"taken over after {time.monotonic() - began:.1f} s")
            assert await _holder(store) == two.output.strip()
            if end == signal.SIGSTOP:
                one.signal(signal.SIGCONT)
                await until(lambda: "no longer held here" in one.log, within=5)
            (tmp_path / "may_end").touch()

            async def is_done() -> bool:
                found = await store.runs.find("local", "left")
                return found is not None and found.status == "done"

            await until(is_done, within=patient(10))
            kinds = [event.kind for event in await store.runs.events("local", "left")]
            assert (kinds.count("run.resumed"), kinds.count("run.finished")) == (1, 1)
            assert _begun(tmp_path) == ["one", "two"]
