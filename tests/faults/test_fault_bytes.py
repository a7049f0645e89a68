"""Bytes on a stdio wire that are no good answer: they hurt the one request at most."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from patience import patient, until
from servers.hubs import QUICK, open_hub, quick
from servers.processes import stdio

pytestmark = [pytest.mark.anyio, pytest.mark.fault]
BOTH_ERAS = pytest.mark.parametrize("era", ["2025", "2026"])
MEGABYTE = 1024 * 1024


async def pid_of(hub: Hub, slug: str) -> int | None:
    return (await hub.connectors.get(slug)).status.pid


@BOTH_ERAS
async def test_garbage_between_answers_is_counted_and_ignored(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era), **QUICK)
        first = await pid_of(hub, "a")
        output = await hub.call("mcp_a_garbage", {})
        assert output.result == "after the garbage", output.error
        status = (await hub.connectors.get("a")).status
        assert status.garbage_lines > 0
        assert status.pid == first


@BOTH_ERAS
@pytest.mark.parametrize(("inside", "answer"), [(False, "after the bad bytes"), (True, "caf\ufffd")])
async def test_bytes_that_are_no_utf8_do_not_stop_the_reader(
    tmp_path: Path, era: str, inside: bool, answer: str
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era), **QUICK)
        first = await pid_of(hub, "a")
        output = await hub.call("mcp_a_bad_utf8", {"inside_answer": inside})
        assert output.result == answer, output.error
        assert (await hub.call("mcp_a_echo", {"text": "fine"})).ok
        assert await pid_of(hub, "a") == first


@BOTH_ERAS
async def test_an_answer_of_the_wrong_shape_is_the_fault_of_that_call_alone(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era), **QUICK)
        first = await pid_of(hub, "a")
        gate = tmp_path / "gate"
        bystander = asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 60, "gate": str(gate)}))
        output = await hub.call("mcp_a_wrong_shape", {})
        assert output.error is not None
        assert output.error.code == "protocol_fault"
        assert output.error.connector == "a"
        assert not bystander.done()
        gate.write_text("x")
        assert (await bystander).ok
        assert await pid_of(hub, "a") == first


async def test_a_second_answer_and_an_answer_to_nobody_are_ignored(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        first = await pid_of(hub, "a")
        for turn in range(3):
            output = await hub.call("mcp_a_answer_twice", {"text": f"turn {turn}"})
            assert output.result == f"turn {turn}"
        assert (await hub.call("mcp_a_echo", {"text": "own"})).result == "own"
        assert await pid_of(hub, "a") == first


async def test_a_question_of_the_server_is_answered(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", "2025"), **QUICK)
        output = await hub.call("mcp_a_ask_client", {})
        assert output.result["result"] == {}, output


async def latencies(hub: Hub, tool: str, stop: asyncio.Event) -> list[float]:
    taken: list[float] = []
    while not stop.is_set() or len(taken) < 50:
        started = time.perf_counter()
        assert (await hub.call(tool, {"text": "quick"})).ok
        taken.append(time.perf_counter() - started)
    return sorted(taken)


def p99(taken: list[float]) -> float:
    return taken[min(len(taken) - 1, int(len(taken) * 0.99))]


async def test_a_line_of_16_megabytes_does_not_slow_the_others(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        async with asyncio.TaskGroup() as adding:
            adding.create_task(hub.connectors.add("large", **stdio(), **quick(request_timeout=patient(30))))
            adding.create_task(hub.connectors.add("small", **stdio(), **QUICK))
        calm, done = asyncio.Event(), asyncio.Event()
        calm.set()
        undisturbed = p99(await latencies(hub, "mcp_small_echo", calm))
        bystander = asyncio.ensure_future(latencies(hub, "mcp_small_echo", done))
        outputs = [await hub.call("mcp_large_big", {"bytes": 16 * MEGABYTE}) for _ in range(3)]
        done.set()
        assert p99(await bystander) < undisturbed + patient(0.15)
        assert all(output.ok and output.metadata.truncated for output in outputs)
        kept = await hub.result(outputs[-1].metadata.handle or "")
        assert len(kept.body) >= 16 * MEGABYTE


async def test_a_message_over_the_limit_is_refused_and_the_connection_recovers(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK, max_message_bytes=MEGABYTE)
        output = await hub.call("mcp_a_big", {"bytes": 3 * MEGABYTE}, timeout=patient(3))
        assert output.error is not None
        assert output.error.code == "protocol_fault"
        assert (await hub.call("mcp_a_big", {"bytes": 1000})).ok


async def test_the_deadline_covers_the_write_to_a_server_that_does_not_read(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        assert (await hub.call("mcp_a_stop_reading", {"seconds": 30})).ok
        started = time.monotonic()
        output = await hub.call("mcp_a_echo", {"text": "x" * 2 * MEGABYTE}, timeout=patient(0.7))
        assert output.error is not None
        assert output.error.code == "timeout"
        assert time.monotonic() - started < patient(2)


async def test_what_a_server_writes_to_stderr_is_shown(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--stderr", "hello from the start"), **QUICK)
        assert (await hub.call("mcp_a_stderr", {"text": "a warning, \N{SNOWMAN}"})).ok

        async def shown() -> tuple[str, ...]:
            return (await hub.connectors.get("a")).status.stderr

        async def is_shown() -> bool:
            return "a warning, \N{SNOWMAN}" in await shown()

        await until(is_shown, within=2)
        assert "hello from the start" in await shown()


async def test_stderr_without_end_neither_blocks_the_server_nor_grows(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        flood = "\n".join(f"line {number}" for number in range(20_000))
        assert (await hub.call("mcp_a_stderr", {"text": flood})).ok
        assert (await hub.call("mcp_a_stderr", {"text": "x" * 3 * MEGABYTE})).ok
        assert (await hub.call("mcp_a_echo", {"text": "fine"})).ok
        shown = (await hub.connectors.get("a")).status.stderr
        assert 0 < len(shown) <= 1000
        assert sum(map(len, shown)) < MEGABYTE


async def test_a_failure_that_the_tool_tells_is_no_fault_of_the_server(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output = await hub.call("mcp_a_fail", {"text": "no such customer"})
        assert output.error is not None
        assert output.error.code == "tool_failed"
        assert "no such customer" in output.error.message
        assert (await hub.connectors.get("a")).status.state == "connected"


async def test_progress_of_one_call_disturbs_nobody(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output: Any = await hub.call("mcp_a_progress", {"n": 500})
        assert output.ok, output.error
