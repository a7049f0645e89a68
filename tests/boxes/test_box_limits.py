"""What a boxed program uses is limited, and what it was ended for is said."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from boxes.boxed import added, called, needs, open_hub
from descriptors import no_descriptors
from dragoman import Hub
from dragoman.connections.boxes.watchdog import BoxWatchdog, LimitEnd
from dragoman.connector import BoxLimits
from patience import patient, until

pytestmark = pytest.mark.anyio


async def cause_after(hub: Hub, what: str, limits: dict[str, float], sandbox: str = "auto") -> str:
    """What is said of a call of a server that uses up one thing."""
    await added(hub, limits=limits, sandbox=sandbox)
    output = await hub.call("mcp_hostile_use", {"facts": {"what": what}})
    assert output.error is not None, output
    return output.error.message


@pytest.mark.parametrize(
    ("what", "limits", "said"),
    [
        ("memory", {"memory": 64}, " MB of 64 MB (limits.memory)"),
        ("unnamed memory", {"memory": 64}, " MB of 64 MB (limits.memory)"),
        ("processes", {"processes": 20}, " processes of 20 (limits.processes)"),
        ("threads", {"processes": 4}, " threads, as many as 4 processes may have (limits.processes)"),
        ("cpu", {"cpu": 0.5}, " s of 0.5 s of processor time (limits.cpu)"),
        ("disk", {"disk": 40}, " MB of 40 MB (limits.disk)"),
        ("unnamed disk", {"disk": 40}, " MB of 40 MB (limits.disk)"),
    ],
)
async def test_a_program_over_a_limit_is_ended_and_the_limit_is_its_cause(
    what: str, limits: dict[str, float], said: str, tmp_path: Path
) -> None:
    needs("bubblewrap")
    async with open_hub(tmp_path, request_timeout=patient(20)) as hub:
        cause = await cause_after(hub, what, limits)
        assert "killed: " in cause
        assert said in cause


async def test_a_home_that_is_full_is_filled_no_further_by_the_next_start(tmp_path: Path) -> None:
    needs("bubblewrap")
    async with open_hub(tmp_path, request_timeout=patient(20)) as hub:
        cause = await cause_after(hub, "names", {"disk": 16})
        assert " MB of 16 MB (limits.disk)" in cause
        output = await hub.call("mcp_hostile_look", {"facts": {}})
        assert output.error is not None
        assert " MB of 16 MB (limits.disk)" in output.error.message
        assert output.error.hint == (
            'hub.connectors.clear_homes("hostile"), or if it may have more: '
            'hub.connectors.update("hostile", limits={"disk": …})'
        )
        await hub.connectors.clear_homes("hostile")
        assert (await called(hub, "look"))["pid"] == 2


async def test_a_container_is_held_to_limits_by_the_watchdog_or_its_control_group(tmp_path: Path) -> None:
    needs("container")
    async with open_hub(tmp_path, request_timeout=patient(20)) as hub:
        cause = await cause_after(hub, "memory", {"memory": 64}, "container")
        assert " MB of 64 MB (limits.memory)" in cause or "signal 9" in cause
        await hub.connectors.remove("hostile")
        cause = await cause_after(hub, "processes", {"processes": 20}, "container")
        assert " processes of 20 (limits.processes)" in cause or "temporarily unavailable" in cause


async def test_a_program_has_no_more_open_files_than_its_limit(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        cause = await cause_after(hub, "files", {"files": 64})
        assert "Too many open files" in cause


async def test_the_temporary_directory_of_a_box_is_its_own_and_ends(tmp_path: Path) -> None:
    needs("bubblewrap")
    async with open_hub(tmp_path) as hub:
        await added(hub)
        found = await called(hub, "look", write={"/tmp/left": "x"})
        assert json.dumps(found["/tmp/left"]) == '"written"'
        assert not Path("/tmp/left").exists()


PROCESSES = ["bash", "-c", "while read line; do sleep 60 & done"]
THREADS = (
    "import sys, threading, time\nfor _ in sys.stdin: threading.Thread(target=time.sleep, args=[60]).start()"
)


class _Starter:
    """Starts something for every line that it is given."""

    def __init__(self, *words: str) -> None:
        self.program = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        self.ended_by: LimitEnd | None = None
        self.mark = "starter"

    @property
    def pid(self) -> int:
        return self.program.pid

    def start(self, count: int) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write(b"\n" * count)
        self.program.stdin.flush()

    def kill(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        self.program.communicate()


async def test_processes_that_a_program_starts_later_count_and_threads_do_not(tmp_path: Path) -> None:
    one = _Starter(*PROCESSES)
    other = _Starter("bash", "-c", f"{sys.executable} -c {shlex.quote(THREADS)}; true")
    watchdog = BoxWatchdog()
    limits = BoxLimits(processes=5)
    try:
        async with asyncio.TaskGroup() as tasks:
            looks = tasks.create_task(watchdog.watch())
            with watchdog.watching(one, limits, tmp_path, 0), watchdog.watching(other, limits, tmp_path, 0):
                one.start(2)
                await asyncio.sleep(2.5)  # looked at, while nothing starts
                assert one.ended_by is None
                other.start(20)
                await asyncio.sleep(1.5)
                with no_descriptors():
                    await asyncio.sleep(2.5)
                one.start(4)
                await until(lambda: one.ended_by is not None)
            looks.cancel()
        assert one.ended_by is not None
        assert one.ended_by.cause.endswith("processes of 5 (limits.processes)")
        assert other.ended_by is None
    finally:
        other.kill()
