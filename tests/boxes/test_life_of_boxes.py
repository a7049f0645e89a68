"""Boxes end with what they hold, whoever ends first; nothing of them is left."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from boxes.boxed import added, called, needs, open_hub
from dragoman import Hub
from dragoman.connections.boxes import machine
from patience import patient, wait_until
from servers.hubs import QUICK, children, until
from servers.processes import journal, read_log, stdio

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
HOLDER = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = [sys.argv[2]]
from boxes.boxed import added, called, open_hub
async def main():
    async with open_hub(Path(sys.argv[1])) as hub:
        listed = {"network": ["example.com:443"]}
        await added(hub, **({"sandbox": "container"} if sys.argv[3:] else listed))
        pid = (await hub.connectors.get("hostile")).status.pid
        print(pid, (await called(hub, "look"))["env"]["DRAGOMAN_CONNECTION"], flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_server_is_back_for_the_next_call(number: signal.Signals, tmp_path: Path) -> None:
    needs("bubblewrap")
    async with open_hub(tmp_path) as hub:
        await added(hub)
        pid = (await hub.connectors.get("hostile")).status.pid
        assert pid is not None
        family = [pid, *(one.pid for one in psutil.Process(pid).children(recursive=True))]
        assert len(family) == 3, "who waits, the first process of the box, and the server"
        os.kill(pid, number)
        await until(lambda: not any(psutil.pid_exists(one) for one in family))
        assert (await called(hub, "look"))["pid"] == 2


async def test_a_server_that_closes_its_own_pipes_and_lives_is_noticed(tmp_path: Path) -> None:
    needs("bubblewrap")
    async with open_hub(tmp_path) as hub:
        given: dict[str, Any] = {**QUICK, "request_timeout": patient(60), **stdio(sandbox="bubblewrap")}
        await hub.connectors.add("a", **given)
        first = (await hub.connectors.get("a")).status.pid
        async with asyncio.timeout(patient(20)):  # less than the request has
            output = await hub.call("mcp_a_close_stdout", {})
            assert output.error is not None
            assert output.error.code == "uncertain"
            assert (await hub.call("mcp_a_echo", {"text": "alive"})).ok
            second = (await hub.connectors.get("a")).status.pid
            assert (await hub.call("mcp_a_close_stdin", {})).ok
            assert (await hub.call("mcp_a_echo", {"text": "again"})).ok
        third = (await hub.connectors.get("a")).status.pid
        assert len({first, second, third}) == 3


async def test_a_server_that_dies_or_freezes_inside_is_as_one_without_a_box(tmp_path: Path) -> None:
    needs("bubblewrap")
    seen, home = tmp_path / "seen", tmp_path / "home"
    seen.mkdir()
    log, file = seen / "log", seen / "journal"

    async def family() -> list[psutil.Process]:
        pid = (await hub.connectors.get("a")).status.pid
        assert pid is not None
        outer = psutil.Process(pid)
        return [outer, *outer.children(recursive=True)]

    async with open_hub(home) as hub:
        words = stdio("--log", str(log), "--journal", str(file), sandbox="bubblewrap")
        await hub.connectors.add("a", **words, **QUICK, mounts=[f"{seen}:rw"])
        # It dies under a call, and what it started and let go ends with it.
        assert (await hub.call("mcp_a_spawn_grandchild", {"detached": True})).ok
        _, _, server, *others = before = await family()
        assert others, "the grandchild"
        call = asyncio.ensure_future(hub.call("mcp_a_sleep_send", {"seconds": 600, "text": "x"}))
        await until(lambda: any(one.get("tool") == "sleep_send" for one in read_log(log)))
        server.kill()
        output = await call
        assert output.error is not None
        assert output.error.code == "uncertain"
        await until(lambda: not any(one.is_running() for one in before))
        assert (await hub.call("mcp_a_die_once", {"marker": str(seen / "marker")})).result == "survived"
        # It freezes, and goes on.
        _, _, server = await family()
        server.suspend()
        output = await hub.call("mcp_a_echo", {"text": "early"}, timeout=0.3)
        assert output.error is not None
        assert output.error.code == "timeout"
        server.resume()
        assert (await hub.call("mcp_a_send", {"text": "late"})).ok
        assert (await family())[-1] == server
        assert journal(file) == ["late"]


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
async def test_what_lets_go_of_its_server_and_hides_whose_it_is_ends_with_it(
    mode: str, tmp_path: Path
) -> None:
    needs(mode)
    seconds = f"600.{os.getpid()}"

    def is_there() -> bool:
        return any(one.info["cmdline"] == ["sleep", seconds] for one in psutil.process_iter(["cmdline"]))

    async with open_hub(tmp_path) as hub:
        await added(hub, sandbox=mode)
        assert (await called(hub, "look", leave=seconds))["left"]
        await until(is_there)
        await hub.connectors.disconnect("hostile")
        await until(lambda: not is_there())


async def test_a_frozen_box_is_closed_in_time(tmp_path: Path) -> None:
    needs("bubblewrap")
    async with open_hub(tmp_path) as hub:
        await added(hub)
        pid = (await hub.connectors.get("hostile")).status.pid
        assert pid is not None
        family = [pid, *(one.pid for one in psutil.Process(pid).children(recursive=True))]
        for one in family:
            os.kill(one, signal.SIGSTOP)
        async with asyncio.timeout(patient(15)):
            await hub.connectors.remove("hostile")
            await until(lambda: not any(psutil.pid_exists(one) for one in family))


def test_what_a_killed_dragoman_leaves_ends_by_itself(tmp_path: Path) -> None:
    needs("bubblewrap")
    words = [sys.executable, "-c", HOLDER, str(tmp_path), str(ROOT / "tests")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline().split()[0])
        family = [pid, *(one.pid for one in psutil.Process(pid).children(recursive=True))]
        assert len(family) == 3
        holder.kill()
    wait_until(lambda: not any(psutil.pid_exists(one) for one in family))


async def first_inside(hub: Hub) -> int:
    """The first process of the container, as this machine numbers it. It is found by the mark of its
    connection: where it is stopped, it notices nothing and must be ended.
    """
    mark = (await called(hub, "look"))["env"]["DRAGOMAN_CONNECTION"]
    pid = machine.first_of_container(f"dragoman-{mark}")
    assert pid is not None
    assert f"DRAGOMAN_CONNECTION={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return pid


async def test_a_container_ends_with_its_client_and_with_its_server(tmp_path: Path) -> None:
    needs("container")
    async with open_hub(tmp_path) as hub:
        await added(hub, sandbox="container", network="none")
        first = await first_inside(hub)
        client = (await hub.connectors.get("hostile")).status.pid
        assert client is not None
        os.kill(client, signal.SIGKILL)
        # A call before its end is noticed may or may not have been executed.
        await until(lambda: not psutil.pid_exists(first) and not psutil.pid_exists(client))

        first = await first_inside(hub)
        second = (await hub.connectors.get("hostile")).status.pid
        assert second is not None
        (server,) = psutil.Process(first).children()
        server.kill()
        await until(lambda: not psutil.pid_exists(first) and not psutil.pid_exists(second))


async def test_a_paused_container_is_noticed_by_a_call_and_closed_in_time(tmp_path: Path) -> None:
    """Its processes lie in a freezer, where the kernel may not even let SIGKILL end them."""
    needs("container")
    program = machine.container().detail
    async with open_hub(tmp_path) as hub:
        await added(hub, sandbox="container", network="none")
        first = await first_inside(hub)
        family = [psutil.Process(first), *psutil.Process(first).children(recursive=True)]
        name = f"dragoman-{(await called(hub, 'look'))['env']['DRAGOMAN_CONNECTION']}"
        if subprocess.run([program, "pause", name], capture_output=True, check=False).returncode:
            for one in family:  # who has no freezer stops them
                one.suspend()
        output = await hub.call("mcp_hostile_look", {"facts": {}}, timeout=0.5)
        assert output.error is not None
        assert output.error.cause == "timeout"
        async with asyncio.timeout(patient(20)):
            await hub.connectors.remove("hostile")
            await until(lambda: not any(one.is_running() for one in family))

            def is_forgotten() -> bool:
                return (
                    subprocess.run([program, "inspect", name], capture_output=True, check=False).returncode
                    != 0
                )

            await until(is_forgotten)


def test_a_container_that_a_killed_dragoman_leaves_ends_by_itself(tmp_path: Path) -> None:
    needs("container")
    words = [sys.executable, "-c", HOLDER, str(tmp_path), str(ROOT / "tests"), "container"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        client, mark = holder.stdout.readline().split()
        first = machine.first_of_container(f"dragoman-{mark}")
        assert first is not None
        holder.kill()
    wait_until(lambda: not psutil.pid_exists(first) and not psutil.pid_exists(int(client)))


async def test_many_starts_leave_no_mount_process_or_descriptor(tmp_path: Path) -> None:
    """Five hundred of them are in bench/boxes.py."""
    needs("bubblewrap")

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    others = children()
    async with open_hub(tmp_path) as hub:
        await added(hub, network=["example.com:443"])
        await hub.connectors.disconnect("hostile")
        await until(lambda: children() <= others)
        before = descriptors()
        for _ in range(8):
            await hub.connectors.connect("hostile")
            await hub.connectors.disconnect("hostile")
        await until(lambda: children() <= others)
        await until(lambda: descriptors() <= before + 2)
        assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
        assert len(list((tmp_path / "boxes").glob("*/*"))) == 1
