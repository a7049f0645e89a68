"""Faults of servers that speak the old SSE transport."""

import asyncio
from pathlib import Path

import pytest

from servers.hubs import QUICK, open_hub, quick, until
from servers.processes import HttpProcess, journal, read_log

pytestmark = [pytest.mark.anyio, pytest.mark.fault]


async def test_an_sse_server_killed_and_started_again_serves_the_next_call(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with HttpProcess(tmp_path, "--journal", str(file), program="sse_server.py") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **quick(retry={"tries": 5, "delay": 0.2}))
            for turn in range(3):
                await asyncio.to_thread(server.restart)
                output = await hub.call("mcp_a_echo", {"text": f"turn {turn}"})
                assert output.result == f"turn {turn}", output.error


async def test_a_dead_sse_server_is_unreachable_and_then_back(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with HttpProcess(tmp_path, "--journal", str(file), program="sse_server.py") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            await asyncio.to_thread(server.kill)
            output = await hub.call("mcp_a_send", {"text": "lost"})
            assert output.error is not None
            assert output.error.code == "unreachable"
            server.start()
            assert (await hub.call("mcp_a_send", {"text": "found"})).ok
            assert journal(file) == ["found"]


async def test_a_kill_mid_call_is_uncertain_for_what_has_effects(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "journal"
    words = ("--journal", str(file), "--log", str(log))
    with HttpProcess(tmp_path, *words, program="sse_server.py") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            call = asyncio.ensure_future(hub.call("mcp_a_sleep_send", {"seconds": 5, "text": "x"}))
            await until(lambda: any(entry.get("tool") == "sleep_send" for entry in read_log(log)))
            await asyncio.to_thread(server.kill)
            output = await call
            assert output.error is not None
            assert output.error.code == "uncertain"
            assert journal(file) == []


async def test_sse_from_the_sdk_is_listed_and_called(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--transport", "sse", program="sdk_server.py") as server:
        async with open_hub(tmp_path) as hub:
            view = await hub.connectors.add("a", url=server.url, **QUICK)
            assert view.status.state == "connected"
            assert (await hub.call("mcp_a_add", {"a": 2, "b": 3})).result == {"sum": 5}
