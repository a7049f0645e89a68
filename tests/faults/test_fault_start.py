"""Servers that do not start, start late or start too many at once; and the way back to them."""

import asyncio
import gc
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dragoman.errors import InvalidConfig
from patience import patient
from servers.hubs import QUICK, carrying, children, listed, open_channels, open_hub, quick, state_is, until
from servers.processes import HttpProcess, read_log, starts, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.fault]


async def test_a_missing_program_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidConfig) as caught:
            await hub.connectors.add("a", command="no-such-program-anywhere", **QUICK)
        assert "no-such-program-anywhere" in caught.value.message
        assert caught.value.hint
        assert await listed(hub) == []


async def test_a_program_that_vanished_fails_fast_until_it_is_back(tmp_path: Path) -> None:
    program, words = tmp_path / "server", stdio()
    script = f"#!/bin/sh\nexec {words['command']} {' '.join(words['args'])}\n"
    program.write_text(script)
    program.chmod(0o755)
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("a", command=str(program), **QUICK)
        assert view.status.state == "connected", view.status.cause
        program.unlink()
        await hub.connectors.disconnect("a")
        started = time.monotonic()
        output = await hub.call("mcp_a_echo", {"text": "x"})
        assert output.error is not None
        assert output.error.code == "invalid_config"
        assert output.error.hint
        assert time.monotonic() - started < patient(1)
        view = await hub.connectors.get("a")
        assert view.status.state == "error"
        assert view.status.next_attempt is None, "only a call or a change can help"
        program.write_text(script)
        program.chmod(0o755)
        assert (await hub.call("mcp_a_echo", {"text": "here"})).ok


async def test_a_server_that_exits_at_start_is_kept_with_its_last_words(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        words = stdio("--exit-at-start", "7", "--stderr", "the licence has expired")
        view = await hub.connectors.add("a", **words, **QUICK)
        assert view.status.state in ("error", "reconnecting")
        assert "the licence has expired" in (view.status.cause or "")
        assert "7" in (view.status.cause or "")
        assert "the licence has expired" in view.status.stderr
        assert [view.connector.slug for view in await listed(hub)] == ["a"]


async def test_a_server_that_crashes_on_initialize_tells_why(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("a", **stdio("--crash-on-initialize"), **QUICK)
        assert view.status.state in ("error", "reconnecting")
        assert "crash on initialize" in (view.status.cause or "")


async def test_a_program_that_is_no_mcp_server_is_an_error_in_time(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add(
            "a", command="sh", args=["-c", "echo hello; cat >/dev/null"], **quick(connect_timeout=1)
        )
        assert view.status.state in ("error", "reconnecting")
        assert view.status.cause


async def test_the_connect_timeout_is_kept_and_named(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        started = time.monotonic()
        view = await hub.connectors.add("a", **stdio("--never-initialise"), **quick(connect_timeout=0.5))
        assert time.monotonic() - started < patient(5)
        assert view.status.state in ("error", "reconnecting")
        assert view.status.cause


async def test_a_call_to_a_server_that_cannot_connect_keeps_its_own_deadline(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--require-file", str(gate)), **QUICK)
        await hub.connectors.update("a", **stdio("--never-initialise"))
        started = time.monotonic()
        output = await hub.call("mcp_a_echo", {"text": "x"}, timeout=patient(0.6))
        assert output.error is not None
        assert output.error.code in ("connect_timeout", "timeout", "unreachable")
        assert time.monotonic() - started < patient(2)


@pytest.mark.timeout(90)
async def test_a_server_that_never_initialises_200_times_leaves_nothing_behind(tmp_path: Path) -> None:
    canary, before = f"canary-{tmp_path.name}-{time.time_ns()}", children()
    configuration = quick(
        connect_timeout=0.3, auto_reconnect=False, retry={"tries": 1}, env={"TEST_CANARY": canary}
    )
    async with open_hub(tmp_path, max_spawns=8) as hub:

        async def attempt(slug: str) -> None:
            await hub.connectors.add(slug, **stdio("--never-initialise"), **configuration)
            await hub.connectors.remove(slug)

        await attempt("first")
        gc.collect()
        tasks, channels = len(asyncio.all_tasks()), len(open_channels())
        for batch in range(25):
            async with asyncio.TaskGroup() as attempts:
                for number in range(8):
                    attempts.create_task(attempt(f"c{batch}-{number}"))
        await until(lambda: not carrying(canary))
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        gc.collect()
        assert children() == before
        assert len(open_channels()) <= channels
        assert await listed(hub) == []


async def test_thirty_servers_at_once_start_a_few_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path, max_spawns=4) as hub:
        async with asyncio.TaskGroup() as adding:
            for number in range(30):
                words = stdio("--start-delay", "0.3", "--log", str(log))
                adding.create_task(
                    hub.connectors.add(f"c{number}", **words, **quick(connect_timeout=patient(20)))
                )
        assert {view.status.state for view in await listed(hub)} == {"connected"}
        outputs = await asyncio.gather(
            *(hub.call(f"mcp_c{number}_echo", {"text": f"{number}-th"}) for number in range(30))
        )
        assert [output.result for output in outputs] == [f"{number}-th" for number in range(30)]
        assert starts(log) == 30
        starting, most = 0, 0
        for entry in sorted(read_log(log), key=lambda entry: entry["time"]):
            starting += {"born": 1, "start": -1}.get(entry["event"], 0)
            most = max(most, starting)
        assert 2 <= most <= 4


async def test_fifty_callers_share_one_connect(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        words = stdio("--start-delay", "0.3", "--log", str(log))
        await hub.connectors.add("a", **words, **quick(max_concurrency=64))
        await hub.connectors.disconnect("a")
        assert starts(log) == 1
        outputs = await asyncio.gather(
            *(hub.call("mcp_a_echo", {"text": f"caller {number}"}) for number in range(50))
        )
        assert [output.result for output in outputs] == [f"caller {number}" for number in range(50)]
        assert starts(log) == 2


async def test_a_server_that_comes_late_appears_by_itself(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("a", **stdio("--require-file", str(gate)), **QUICK)
        assert view.catalog == "empty"
        assert hub.tools.list("a") == []
        gate.touch()
        await until(lambda: len(hub.tools.list("a")) > 0, within=8)
        await state_is(hub, "a", "connected")
        assert (await hub.call("mcp_a_echo", {"text": "here"})).ok


async def test_backoff_grows_shows_its_next_attempt_and_resets(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        words = stdio("--require-file", str(gate), "--log", str(log))
        view = await hub.connectors.add("a", **words, **QUICK)
        assert view.status.next_attempt is not None
        assert view.status.next_attempt > (now := datetime.now(UTC))
        assert view.status.next_attempt - now < timedelta(seconds=1.3)
        first = view.status.attempt
        await until(lambda: starts(log) >= 3, within=10)
        at = [entry["time"] for entry in read_log(log) if entry["event"] == "refused"]
        assert at[1] - at[0] >= 0.8
        assert at[2] - at[1] >= 1.6, "the pauses do not grow"

        async def has_counted() -> bool:
            return (await hub.connectors.get("a")).status.attempt > first

        await until(has_counted)
        gate.touch()
        view = await hub.connectors.connect("a")
        assert view.status.state == "connected"
        assert view.status.next_attempt is None
        assert view.status.attempt == 0, "success did not reset the counter"


async def test_a_call_during_backoff_connects_at_once(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    gate.touch()
    async with open_hub(tmp_path) as hub:
        words = stdio("--require-file", str(gate), "--log", str(log))
        await hub.connectors.add("a", **words, **quick(retry={"tries": 1}))
        gate.unlink()
        assert not (await hub.call("mcp_a_die", {})).ok
        await until(lambda: starts(log) >= 4, within=10)
        await state_is(hub, "a", "error")
        planned = (await hub.connectors.get("a")).status.next_attempt
        assert planned is not None
        gate.touch()
        output = await hub.call("mcp_a_echo", {"text": "now"})
        assert output.ok, output.error
        assert datetime.now(UTC) < planned, "the call waited for the backoff"


async def test_without_auto_reconnect_only_a_call_connects_again(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        words = stdio("--require-file", str(gate), "--log", str(log))
        view = await hub.connectors.add("a", **words, **quick(retry={"tries": 1}), auto_reconnect=False)
        assert view.status.state == "error"
        assert view.status.next_attempt is None
        others = stdio("--require-file", str(gate), "--log", str(tmp_path / "others"))
        await hub.connectors.add("b", **others, **quick(retry={"tries": 1}))
        await until(lambda: starts(tmp_path / "others") == 2)  # another that does connect again by itself
        assert starts(log) == 1
        gate.touch()
        view = await hub.connectors.connect("a")
        assert view.status.state == "connected"
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_a_refused_url_is_kept_with_its_cause_and_found_later(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server:
        server.kill()
        async with open_hub(tmp_path) as hub:
            view = await hub.connectors.add("a", url=server.url, **QUICK)
            assert view.status.state in ("error", "reconnecting")
            assert view.status.cause
            assert view.status.next_attempt is not None
            await asyncio.to_thread(server.start)
            await until(lambda: len(hub.tools.list("a")) > 0, within=8)
            await state_is(hub, "a", "connected")
            assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_the_era_is_remembered_so_a_silent_server_costs_its_silence_once(
    tmp_path: Path, era: str
) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        words = stdio("--era", era, "--log", str(log))
        view = await hub.connectors.add("a", **words, **QUICK)
        assert view.status.era == era
        await hub.connectors.disconnect("a")
        before = len(read_log(log))
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok
        asked = [entry.get("method") for entry in read_log(log)[before:]]
        assert ("server/discover" in asked) <= (era == "2026")
        assert ("initialize" in asked) == (era == "2025")


async def test_a_server_that_changes_its_era_is_still_reached(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", "2025"), **QUICK)
        await hub.connectors.update("a", **stdio("--era", "2026"))
        output = await hub.call("mcp_a_echo", {"text": "x"})
        assert output.ok, output.error
    with HttpProcess(tmp_path, "--era", "2025") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("b", url=server.url, **QUICK)
            server.kill()
        with HttpProcess(tmp_path, "--era", "2026") as newer:
            newer.kill()
            newer.port = server.port
            newer.start()
            async with open_hub(tmp_path) as hub:
                output = await hub.call("mcp_b_echo", {"text": "x"})
                assert output.ok, output.error


async def test_at_start_nothing_connects_but_the_tools_are_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        tools = {tool.name for tool in hub.tools.list()}
    async with open_hub(tmp_path) as hub:
        assert {tool.name for tool in hub.tools.list()} == tools
        assert (await hub.connectors.get("a")).status.state == "disconnected"
        assert starts(log) == 1
        assert (await hub.call("mcp_a_echo", {"text": "lazy"})).ok
        assert starts(log) == 2
