"""Processes of the sandbox: when they start, how they end, who waits for whom."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from coding import add_raw, as_caller, open_coding, open_workshop

from dragoman import Caller, Hub
from dragoman.hub.code import Code
from dragoman.sandbox import CodeLimits
from patience import deadline, patient
from servers.hubs import open_hub, until

pytestmark = pytest.mark.anyio


def workers() -> list[psutil.Process]:
    found = [child for child in psutil.Process().children() if child.is_running()]
    return [child for child in found if child.status() != psutil.STATUS_ZOMBIE and "monty" in child.name()]


def computed() -> float:
    """Seconds for which the workers have computed."""
    return sum(one.cpu_times().user for one in workers())


async def started(code: Code, text: str, user: str = "owner") -> "asyncio.Task[object]":
    before = computed()
    task = asyncio.create_task(as_caller(code, Caller(user=user)).run(text))
    await until(lambda: computed() > before + 0.05)
    return task


async def calling(hub: Hub, code: Code) -> "asyncio.Task[object]":
    task = asyncio.create_task(code.run(f"await raw.sleep(seconds={patient(4)})"))
    await until(lambda: any(link.in_flight for link in hub.links()))
    return task


async def test_nothing_starts_before_the_first_run_and_nothing_is_left_after_the_last(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (_, code):
        assert workers() == []
        assert (await code.run("1 + 1")).result == 2
        assert len(workers()) == 1
        assert workers()[0].nice() >= 10
    assert workers() == []


async def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    async with open_workshop(tmp_path, CodeLimits(execution=patient(20), wall=patient(20))) as (_, code):
        await code.run("1")
        running = await started(code, "while True: pass")
        os.kill(workers()[0].pid, signal.SIGKILL)
        output = await running
        assert output.error.code == "code_crashed"  # type: ignore[attr-defined]
        assert output.error.hint  # type: ignore[attr-defined]
        assert (await code.run("await raw.echo(text='again')")).result == "again"


async def test_who_is_cancelled_frees_the_worker_and_cancels_the_calls(tmp_path: Path) -> None:
    async with open_workshop(tmp_path, CodeLimits(processes=1, per_user=1)) as (hub, code):
        await code.run("await raw.echo(text='warm')")
        for begun in (calling(hub, code), started(code, "while True: pass")):
            running = await begun
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            async with deadline(2):
                assert (await code.run("1 + 1")).result == 2
        assert "cancelled" in [one.code for one in await hub.calls(5)]
        assert all(link.in_flight == 0 for link in hub.links())


async def test_calls_that_were_not_awaited_end_with_their_run(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):
        await code.run("await raw.echo(text='warm')")
        assert (
            await code.run(f"x = raw.sleep(seconds={patient(4)})\nawait raw.echo(text='y')")
        ).result == "y"
        assert all(link.in_flight == 0 for link in hub.links())


async def test_one_user_has_so_many_places_and_no_more(tmp_path: Path) -> None:
    limits = CodeLimits(execution=patient(20), wall=patient(20), processes=4, per_user=1)
    async with open_workshop(tmp_path, limits) as (_, code):
        running = await started(code, "while True: pass", "mallory")
        waiting = asyncio.create_task(as_caller(code, Caller(user="mallory")).run("1"))
        assert (await as_caller(code, Caller(user="alice")).run("2")).result == 2
        assert not waiting.done()
        running.cancel()
        await asyncio.wait([running])
        assert (await waiting).result == 1, "the place was not given on"


async def test_closing_ends_what_runs(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await add_raw(hub)
        async with open_coding(hub, CodeLimits()) as code:
            running = await started(code, "while True: pass")
            waiting = await calling(hub, code)
            closing = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - closing < patient(2)
        for task in (running, waiting):
            assert (await task).error.message == "Dragoman is shutting down"  # type: ignore[attr-defined]
        assert (await code.run("1")).error


@pytest.mark.slow
def test_a_short_program_ends_as_it_should(tmp_path: Path) -> None:
    program = """
import asyncio, pathlib, sys
from dragoman import Hub, Settings
from dragoman.tool import Annotations
async def main():
    async with Hub(Settings(home=pathlib.Path(sys.argv[1]))) as hub:
        only_reads = Annotations(read_only=True)
        hub.add_tool(lambda n: n, name="same", description="The same.", annotations=only_reads)
        await hub.tools.configure("same", allowed_callers=["code"])
        gathered = "import asyncio\\nsum(await asyncio.gather(*[same(n=i) for i in range(50)]))"
        output = await hub.code.run(gathered)
        print(output.result, output.error)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=patient(60)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1225 None\n", "")
