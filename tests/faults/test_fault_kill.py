"""A server that dies or freezes under a call: what is safe is repeated, what is not is `uncertain`."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman import Hub
from patience import patient
from servers.hubs import QUICK, children, open_hub, quick, state_is, until
from servers.processes import journal, read_log, starts, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.fault]
BOTH_ERAS = pytest.mark.parametrize("era", ["2025", "2026"])


async def pid_of(hub: Hub, slug: str = "a") -> int:
    pid = (await hub.connectors.get(slug)).status.pid
    assert pid is not None
    return pid


def received(log: Path, tool: str) -> int:
    return sum(entry.get("tool") == tool for entry in read_log(log))


@BOTH_ERAS
async def test_a_server_killed_while_idle_is_back_for_the_next_call(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era), **QUICK)
        first = await pid_of(hub)
        os.kill(first, signal.SIGKILL)
        started = time.monotonic()
        output = await hub.call("mcp_a_echo", {"text": "back"})
        assert output.ok, output.error
        assert output.result == "back"
        assert time.monotonic() - started < patient(2)
        assert await pid_of(hub) != first


@BOTH_ERAS
async def test_a_kill_is_noticed_without_a_call(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era), **QUICK)
        first = await pid_of(hub)
        os.kill(first, signal.SIGKILL)

        async def was_noticed() -> bool:
            status = (await hub.connectors.get("a")).status
            return status.state != "connected" or status.pid != first

        await until(was_noticed, within=2)


async def test_death_and_return_are_told_as_events_with_their_cause(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        told: list[tuple[str, str | None]] = []

        async def listens() -> None:
            async for event in hub.events():
                if event.kind == "connector.state":
                    told.append((event.data["state"], event.data["cause"]))

        listener = asyncio.ensure_future(listens())
        await asyncio.sleep(0)
        os.kill(await pid_of(hub), signal.SIGKILL)
        await until(lambda: "connected" in [state for state, _ in told])
        state, cause = told[0]
        assert state == "reconnecting"
        assert "signal 9" in (cause or "")
        listener.cancel()
        await asyncio.wait([listener])


@BOTH_ERAS
async def test_a_safe_call_survives_the_death_of_its_server(tmp_path: Path, era: str) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era, "--log", str(log)), **QUICK)
        call = asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 60, "gate": str(gate)}))
        await until(lambda: received(log, "sleep") == 1)
        os.kill(await pid_of(hub), signal.SIGKILL)
        gate.write_text("x")
        output = await call
        assert output.ok, output.error
        assert output.metadata.attempts == 2
        assert received(log, "sleep") == 2


@BOTH_ERAS
async def test_a_call_with_effects_is_uncertain_when_its_server_dies(tmp_path: Path, era: str) -> None:
    log, file = tmp_path / "log", tmp_path / "journal"
    async with open_hub(tmp_path) as hub:
        words = stdio("--era", era, "--log", str(log), "--journal", str(file))
        await hub.connectors.add("a", **words, **QUICK)
        call = asyncio.ensure_future(hub.call("mcp_a_sleep_send", {"seconds": 5, "text": "x"}))
        await until(lambda: received(log, "sleep_send") == 1)
        os.kill(await pid_of(hub), signal.SIGKILL)
        output = await call
        assert output.error is not None
        assert output.error.code == "uncertain"
        assert not output.error.retryable
        assert output.error.hint
        assert received(log, "sleep_send") == 1
        assert journal(file) == []
        assert (await hub.call("mcp_a_send", {"text": "y"})).ok
        assert journal(file) == ["y"]


async def test_what_was_done_before_the_death_is_not_done_again(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--journal", str(file)), **QUICK)
        output = await hub.call("mcp_a_die_after_send", {"text": "once"})
        assert output.error is not None
        assert output.error.code == "uncertain"
        assert journal(file) == ["once"]
        assert (await hub.call("mcp_a_echo", {"text": "alive"})).ok


async def test_a_safe_call_that_kills_its_server_once_is_repeated(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output = await hub.call("mcp_a_die_once", {"marker": str(tmp_path / "marker")})
        assert output.result == "survived"


async def test_tries_are_bounded_when_a_safe_call_always_kills_its_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        marker = tmp_path / "nowhere" / "marker"  # cannot be written: the server dies of it each time
        output = await hub.call("mcp_a_die_once", {"marker": str(marker)}, timeout=patient(3))
        assert not output.ok
        assert received(log, "die_once") <= QUICK["retry"]["tries"]
        assert (await hub.call("mcp_a_echo", {"text": "alive"})).ok


@BOTH_ERAS
async def test_a_kill_during_the_handshake_does_not_lose_the_call(tmp_path: Path, era: str) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    gate.write_text("x")
    async with open_hub(tmp_path) as hub:
        words = stdio("--era", era, "--log", str(log), "--start-gate", str(gate))
        await hub.connectors.add("a", **words, **QUICK)
        await hub.connectors.disconnect("a")
        gate.unlink()
        before = children()
        call = asyncio.ensure_future(hub.call("mcp_a_echo", {"text": "through"}))
        await until(lambda: len(children() - before) == 1)
        os.kill((children() - before).pop(), signal.SIGKILL)
        gate.write_text("x")
        output = await call
        assert output.ok, output.error


async def test_ten_kills_in_a_row_cost_ten_reconnects_and_no_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        for turn in range(10):
            os.kill(await pid_of(hub), signal.SIGKILL)
            output = await hub.call("mcp_a_echo", {"text": f"turn {turn}"})
            assert output.result == f"turn {turn}", output.error
        assert starts(log) == 11
        assert (await hub.connectors.get("a")).status.reconnects == 10


@BOTH_ERAS
async def test_fifty_callers_get_their_own_answers_while_the_server_is_killed(
    tmp_path: Path, era: str
) -> None:
    file = tmp_path / "journal"
    async with open_hub(tmp_path) as hub:
        words = stdio("--era", era, "--journal", str(file))
        await hub.connectors.add("a", **words, **quick(retry={"tries": 8, "delay": 0.05}))
        sent: dict[str, str] = {}
        answered: list[str] = []

        async def caller(number: int) -> None:
            for turn in range(8):
                word = f"caller {number} turn {turn}"
                if number % 2:
                    output = await hub.call("mcp_a_echo", {"text": word})
                    assert output.result == word, output.error
                else:
                    output = await hub.call("mcp_a_send", {"text": word})
                    sent[word] = "ok" if output.ok else output.error.code  # type: ignore[union-attr]
                answered.append(word)

        async with asyncio.TaskGroup() as callers:
            for number in range(50):
                callers.create_task(caller(number))
            for kill in range(1, 6):
                await until(lambda mark=50 * kill: len(answered) >= mark, within=20)
                if pid := (await hub.connectors.get("a")).status.pid:
                    with suppress(ProcessLookupError):  # the one that was killed before, not yet seen
                        os.kill(pid, signal.SIGKILL)
        executed = journal(file)
        assert len(executed) == len(set(executed)), "something was done twice"
        assert set(sent.values()) <= {"ok", "uncertain"}
        assert {word for word, code in sent.items() if code == "ok"} <= set(executed)


@BOTH_ERAS
async def test_a_frozen_server_costs_the_deadline_and_is_replaced(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        configuration = quick(request_timeout=patient(0.6), health_interval=0.3)
        await hub.connectors.add("a", **stdio("--era", era), **configuration)
        first = await pid_of(hub)
        started = time.monotonic()
        output = await hub.call("mcp_a_hang_process", {})
        took = time.monotonic() - started
        assert output.error is not None
        assert output.error.code == "timeout"
        assert took < patient(1.5)

        async def was_replaced() -> bool:
            output = await hub.call("mcp_a_echo", {"text": "again"})
            return output.ok and await pid_of(hub) != first

        await until(was_replaced, within=10)


async def test_a_call_with_effects_that_times_out_is_uncertain(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--journal", str(file)), **QUICK)
        output = await hub.call(
            "mcp_a_sleep_send", {"seconds": patient(3), "text": "late"}, timeout=patient(0.3)
        )
        assert output.error is not None
        assert output.error.code == "uncertain"


@pytest.mark.parametrize("tool", ["half_line_and_exit", "close_stdout", "die"])
async def test_an_answer_that_never_comes_is_uncertain_and_the_next_call_works(
    tmp_path: Path, tool: str
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        started = time.monotonic()
        output = await hub.call(f"mcp_a_{tool}", {})
        assert output.error is not None
        assert output.error.code == "uncertain"
        assert time.monotonic() - started < patient(3), "the end of the server's output was not noticed"
        assert (await hub.call("mcp_a_echo", {"text": "alive"})).ok


async def test_a_server_that_closes_its_input_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--journal", str(file)), **QUICK)
        first = await pid_of(hub)
        assert (await hub.call("mcp_a_close_stdin", {})).ok
        outputs = [await hub.call("mcp_a_send", {"text": f"{turn}"}, timeout=patient(2)) for turn in range(3)]
        assert outputs[-1].ok, outputs[-1].error
        assert await pid_of(hub) != first
        executed = journal(file)
        assert len(executed) == len(set(executed))


async def test_who_waits_for_a_server_that_closes_its_input_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **quick(request_timeout=patient(60)))
        call = asyncio.ensure_future(hub.call("mcp_a_sleep_send", {"seconds": 600, "text": "x"}))
        await until(lambda: received(log, "sleep_send") > 0)
        async with asyncio.timeout(patient(20)):  # less than the request has
            assert (await hub.call("mcp_a_close_stdin", {})).ok
            output = await call
        assert output.error is not None
        assert output.error.code == "uncertain"
        assert "closed its input" in output.error.message


async def test_a_stopped_server_that_wakes_up_again_is_as_good_as_before(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        pid = await pid_of(hub)
        os.kill(pid, signal.SIGSTOP)
        output = await hub.call("mcp_a_echo", {"text": "early"}, timeout=0.3)
        assert output.error is not None
        assert output.error.code == "timeout"
        os.kill(pid, signal.SIGCONT)
        output = await hub.call("mcp_a_echo", {"text": "late"})
        assert output.result == "late", output.error
        await state_is(hub, "a", "connected")
