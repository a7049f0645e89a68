"""How connections end: asked, idle, crowded out, changed under a call, or with the hub itself."""

import asyncio
import os
import signal
import sys
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.connections.process import spawn
from dragoman.errors import Unreachable
from dragoman.scope import Caller
from patience import deadline, give_time, patient
from servers.hubs import (
    QUICK,
    carrying,
    children,
    is_alive,
    listed,
    open_hub,
    quick,
    runtime_of,
    state_is,
    until,
)
from servers.processes import HttpProcess, journal, read_log, starts, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.fault]


async def pid_of(hub: Hub, slug: str = "a") -> int:
    pid = (await hub.connectors.get(slug)).status.pid
    assert pid is not None
    return pid


async def is_under_way(hub: Hub, slug: str, calls: int = 1) -> None:
    async def holds() -> bool:
        return (await hub.connectors.get(slug)).status.in_flight == calls

    await until(holds)


@pytest.mark.parametrize("ending", ["disconnect", "remove", "disable", "shutdown"])
async def test_grandchildren_that_ignore_sigterm_are_reaped(tmp_path: Path, ending: str) -> None:
    canary = f"canary-{time.time_ns()}"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add(
            "a", **stdio("--spawn-child", "--ignore-sigterm"), **QUICK, env={"TEST_CANARY": canary}
        )
        for detached in (False, True):
            output = await hub.call("mcp_a_spawn_grandchild", {"ignore_sigterm": True, "detached": detached})
            assert is_alive(output.result["pid"])
        assert len(carrying(canary)) == 4
        if ending != "shutdown":
            started = time.monotonic()
            await getattr(hub.connectors, ending)("a")
            await until(lambda: not carrying(canary))
            assert time.monotonic() - started < patient(5)
    assert not carrying(canary)


async def test_who_is_cancelled_twice_while_closing_leaves_no_process() -> None:
    # What has much memory takes a while to end.
    program = "import time; much = bytearray(b'x') * (200 << 20); print(); time.sleep(600)"
    process, is_large = spawn(sys.executable, ["-uc", program], dict(os.environ), None), asyncio.Event()
    await process.start(lambda line: is_large.set(), 1000, lambda: None)
    await is_large.wait()
    closing = asyncio.ensure_future(process.close())
    for _ in range(2):
        await asyncio.sleep(0)
        closing.cancel()
    with suppress(asyncio.CancelledError):
        await closing
    assert closing.cancelled()
    assert process.exit_code == -signal.SIGKILL


async def test_grandchildren_of_a_killed_server_are_reaped(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        grandchild = (await hub.call("mcp_a_spawn_grandchild", {"detached": True})).result["pid"]
        os.kill(await pid_of(hub), signal.SIGKILL)
        assert (await hub.call("mcp_a_echo", {"text": "back"})).ok
        await until(lambda: not is_alive(grandchild))


@pytest.mark.timeout(60)
async def test_shutdown_is_quick_whatever_the_servers_do(tmp_path: Path) -> None:
    canary = f"canary-{time.time_ns()}"
    local: dict[str, Any] = quick(env={"TEST_CANARY": canary}, request_timeout=60)
    with HttpProcess(tmp_path, "--era", "2025") as old, HttpProcess(tmp_path, "--era", "2026") as new:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(open_hub(tmp_path))
            async with asyncio.TaskGroup() as adding:
                adding.create_task(hub.connectors.add("stubborn", **stdio("--ignore-sigterm"), **local))
                adding.create_task(hub.connectors.add("stopped", **stdio(), **local))
                adding.create_task(hub.connectors.add("parent", **stdio("--spawn-child"), **local))
                adding.create_task(hub.connectors.add("old", url=old.url, **QUICK))
                adding.create_task(hub.connectors.add("new", url=new.url, **QUICK))
                adding.create_task(
                    hub.connectors.add("mute", **stdio("--never-initialise"), **local, connect=False)
                )
            old.plan("hang", method="*", times=-1)
            new.plan("hang", method="*", times=-1)
            calls: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(hub.call(name, arguments))
                for name, arguments in [
                    ("mcp_stubborn_sleep", {"seconds": 50}),
                    ("mcp_stopped_hang_process", {}),
                    ("mcp_parent_sleep_send", {"seconds": 50, "text": "x"}),
                    ("mcp_old_echo", {"text": "x"}),
                    ("mcp_new_send", {"text": "x"}),
                ]
            ]
            calls.append(asyncio.ensure_future(hub.connectors.connect("mute")))
            for slug in ("stubborn", "stopped", "parent", "old", "new"):
                await is_under_way(hub, slug)
            await state_is(hub, "mute", "connecting")
            old.stop()
            started = time.monotonic()
            await stack.aclose()
            assert time.monotonic() - started < patient(10)
            async with deadline(1):  # nobody is left without an answer
                await asyncio.gather(*calls, return_exceptions=True)
        old.resume()
    assert not carrying(canary)


async def test_an_idle_connection_closes_by_itself_and_the_next_call_opens_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK, idle_ttl=0.5)
        pid = await pid_of(hub)
        output = await hub.call("mcp_a_sleep", {"seconds": 1.2})
        assert output.ok, "a call under way is not idleness"
        await state_is(hub, "a", "disconnected", within=4)
        await until(lambda: not is_alive(pid))
        assert (await hub.call("mcp_a_echo", {"text": "again"})).ok
        assert starts(log) == 2


async def test_idleness_of_zero_keeps_a_connection_open(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK, idle_ttl=0)
        pid = await pid_of(hub)
        await hub.connectors.add("b", **stdio(), **QUICK, idle_ttl=0.3)
        await state_is(hub, "b", "disconnected")
        assert await pid_of(hub) == pid


async def test_over_the_cap_the_least_recently_used_idle_connection_goes(tmp_path: Path) -> None:
    async with open_hub(tmp_path, max_servers=2) as hub:
        for slug in ("a", "b", "c"):
            await hub.connectors.add(slug, **stdio(), **QUICK)
            await hub.connectors.disconnect(slug)
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok
        assert (await hub.call("mcp_b_echo", {"text": "x"})).ok
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok
        assert (await hub.call("mcp_c_echo", {"text": "x"})).ok
        states = {view.connector.slug: view.status.state for view in await listed(hub)}
        assert states == {"a": "connected", "b": "disconnected", "c": "connected"}


async def test_over_the_cap_a_new_connection_is_refused_when_all_are_busy(tmp_path: Path) -> None:
    async with open_hub(tmp_path, max_servers=2) as hub:
        for slug in ("a", "b", "c"):
            await hub.connectors.add(slug, **stdio(), **QUICK)
        await hub.connectors.disconnect("c")
        gate = tmp_path / "gate"
        busy = [
            asyncio.ensure_future(hub.call(f"mcp_{slug}_sleep", {"seconds": 60, "gate": str(gate)}))
            for slug in ("a", "b")
        ]
        await is_under_way(hub, "a")
        await is_under_way(hub, "b")
        output = await hub.call("mcp_c_echo", {"text": "x"})
        assert output.error is not None
        assert output.error.code == "limit_reached"
        assert output.error.hint
        assert output.error.retryable
        assert not any(call.done() for call in busy), "it waited for a place"
        gate.write_text("x")
        assert all(output.ok for output in await asyncio.gather(*busy))
        assert (await hub.call("mcp_c_echo", {"text": "x"})).ok


async def test_no_more_calls_at_once_than_the_connector_allows(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK, max_concurrency=2)
        started = time.monotonic()
        calls = [asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 0.3})) for _ in range(6)]
        assert all(output.ok for output in await asyncio.gather(*calls))
        assert time.monotonic() - started >= 0.85
        running, most = 0, 0
        for entry in read_log(log):
            running += (entry.get("tool") == "sleep") - (entry["event"] == "woke")
            most = max(most, running)
        assert most == 2


async def test_waiting_for_a_place_is_within_the_deadline(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK, max_concurrency=1)
        gate = tmp_path / "gate"
        busy = asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 60, "gate": str(gate)}))
        await is_under_way(hub, "a")
        output = await hub.call("mcp_a_send", {"text": "x"}, timeout=0.3)
        assert output.error is not None
        assert output.error.code in ("limit_reached", "timeout"), "it never left: nothing is uncertain"
        assert not busy.done(), "it waited longer than it may"
        gate.write_text("x")
        assert (await busy).ok


async def test_a_cancelled_call_tells_the_server_and_leaves_the_connection(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        pid = await pid_of(hub)
        call = asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 30}))
        await until(lambda: any(entry.get("tool") == "sleep" for entry in read_log(log)))
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        await until(lambda: any(entry["event"] == "cancelled" for entry in read_log(log)))
        assert (await hub.call("mcp_a_echo", {"text": "usable"})).ok
        assert await pid_of(hub) == pid
        assert (await hub.connectors.get("a")).status.in_flight == 0


async def test_a_caller_who_gives_up_during_connect_does_not_spoil_it_for_others(tmp_path: Path) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    gate.write_text("x")
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--start-gate", str(gate), "--log", str(log)), **QUICK)
        await hub.connectors.disconnect("a")
        gate.unlink()
        first = asyncio.ensure_future(hub.call("mcp_a_echo", {"text": "first"}))
        await is_under_way(hub, "a", 1)
        second = asyncio.ensure_future(hub.call("mcp_a_echo", {"text": "second"}))
        await is_under_way(hub, "a", 2)
        first.cancel()
        gate.write_text("x")
        assert (await second).result == "second"
        assert starts(log) == 2


async def test_an_update_lets_calls_under_way_finish(tmp_path: Path) -> None:
    file, gate = tmp_path / "journal", tmp_path / "gate"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--journal", str(file)), **QUICK)
        before = await pid_of(hub)
        words = {"seconds": 60, "text": "through", "gate": str(gate)}
        call = asyncio.ensure_future(hub.call("mcp_a_sleep_send", words))
        await is_under_way(hub, "a")
        await hub.connectors.update("a", env={"COLOUR": "blue"})
        output = await hub.call("mcp_a_environment", {})
        assert output.result["env"]["COLOUR"] == "blue", "a new call met the old configuration"
        gate.write_text("x")
        assert (await call).ok, "the update ended a call under way"
        assert journal(file) == ["through"]
        await until(lambda: not is_alive(before))


async def test_removal_lets_calls_under_way_finish(tmp_path: Path) -> None:
    file, gate = tmp_path / "journal", tmp_path / "gate"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--journal", str(file)), **QUICK)
        pid = await pid_of(hub)
        words = {"seconds": 60, "text": "last", "gate": str(gate)}
        call = asyncio.ensure_future(hub.call("mcp_a_sleep_send", words))
        await is_under_way(hub, "a")
        removal = asyncio.ensure_future(hub.connectors.remove("a"))
        await until(lambda: hub.tools.list() == [])
        output = await hub.call("mcp_a_echo", {"text": "too late"})
        assert output.error is not None
        assert output.error.code == "not_found"
        gate.write_text("x")
        assert (await call).ok, "the removal ended a call under way"
        await removal
        await until(lambda: not is_alive(pid))
        assert journal(file) == ["last"]
        assert hub.tools.list() == []


async def test_a_call_that_waits_for_a_removed_connector_opens_nothing(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    gate.touch()
    before = children()
    async with open_hub(tmp_path) as hub:
        words = stdio("--require-file", str(gate), "--log", str(log))
        await hub.connectors.add("a", **words, **quick(retry={"tries": 9, "delay": patient(30), "factor": 1}))
        gate.unlink()
        os.kill(await pid_of(hub), signal.SIGKILL)
        call = asyncio.ensure_future(hub.call("mcp_a_echo", {"text": "x"}))
        # In the pause before its next try, with no start under way.
        await until(lambda: starts(log) >= 2 and children() == before)
        await hub.connectors.remove("a")
        gate.touch()
        output = await call
        assert output.error is not None
        assert output.error.code in ("unreachable", "not_found")
        assert hub.links() == []
        started = starts(log)
        await give_time(1.2)
        assert starts(log) == started, "a connector that is gone was connected"


async def test_a_connector_that_was_removed_is_opened_in_no_revision(tmp_path: Path) -> None:
    """Who changed it while it was being removed has a newer record than whoever removed it knew."""
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("a", **stdio(), **QUICK)
        source = runtime_of(hub).sources[view.connector.kind]
        newer = replace(view.connector, revision=view.connector.revision + 1)
        await hub.connectors.remove("a")
        with pytest.raises(Unreachable, match="changed or removed"):
            await source.connect(newer, Caller())
        await source.retire(newer)  # as who changed it does next
        with pytest.raises(Unreachable, match="changed or removed"):
            await source.connect(replace(newer, revision=newer.revision + 1), Caller())
        assert hub.links() == []


async def test_a_disabled_connector_is_closed_and_refuses_until_enabled(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        pid = await pid_of(hub)
        view = await hub.connectors.disable("a")
        assert view.status.state == "disabled"
        await until(lambda: not is_alive(pid))
        output = await hub.call("mcp_a_echo", {"text": "x"})
        assert output.error is not None
        assert starts(log) == 1
        await hub.connectors.enable("a")
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_disconnect_closes_until_someone_calls(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        pid = await pid_of(hub)
        view = await hub.connectors.disconnect("a")
        assert view.status.state == "disconnected"
        await until(lambda: not is_alive(pid))
        await give_time(1.3)
        assert (await hub.connectors.get("a")).status.state == "disconnected", "nobody asked for it"
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_a_health_check_finds_a_frozen_idle_server_and_replaces_it(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        configuration = quick(health_interval=0.3, request_timeout=patient(1))
        await hub.connectors.add("a", **stdio("--era", era), **configuration)
        assert (await hub.call("mcp_a_echo", {"text": "in use"})).ok
        first = await pid_of(hub)
        os.kill(first, signal.SIGSTOP)
        await until(lambda: not is_alive(first), within=20)
        output = await hub.call("mcp_a_echo", {"text": "again"})
        assert output.ok, output.error
        assert await pid_of(hub) != first


@pytest.mark.parametrize("words", [("--era", "2025"), ("--era", "2025", "--no-ping"), ("--era", "2026")])
async def test_health_checks_use_the_connection_that_is_there(tmp_path: Path, words: tuple[str, ...]) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        configuration = quick(health_interval=0.1)
        await hub.connectors.add("a", **stdio(*words, "--log", str(log)), **configuration)
        before = len(read_log(log))
        await until(lambda: len(read_log(log)) >= before + 4)
        assert starts(log) == 1
        assert (await hub.connectors.get("a")).status.state == "connected"


async def test_twenty_kills_over_a_thousand_calls_leave_no_trace(tmp_path: Path) -> None:
    canary = f"canary-{time.time_ns()}"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK, env={"TEST_CANARY": canary})
        tasks = len(asyncio.all_tasks())
        for _ in range(20):
            outputs = await asyncio.gather(
                *(hub.call("mcp_a_echo", {"text": f"call {number}"}) for number in range(50))
            )
            assert [output.result for output in outputs] == [f"call {number}" for number in range(50)]
            os.kill(await pid_of(hub), signal.SIGKILL)
        assert (await hub.call("mcp_a_echo", {"text": "last"})).ok
        await until(lambda: len(carrying(canary)) == 1)
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
