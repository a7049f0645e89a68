"""Faults of HTTP servers in both eras: one request's fault is never another's."""

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import patient
from servers.hubs import QUICK, open_hub, quick, state_is, until
from servers.processes import HttpProcess, journal

pytestmark = [pytest.mark.anyio, pytest.mark.fault]
MEGABYTE = 1024 * 1024


@pytest.fixture(params=["2025", "2025-sse", "2026", "2026-sse"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HttpProcess]:
    era, _, answers = str(request.param).partition("-")
    words = ["--era", era, "--journal", str(tmp_path / "journal"), *(["--sse"] if answers else [])]
    with HttpProcess(tmp_path, *words) as process:
        yield process


def listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


# What befalls one answer; whether the tool ran before that; what a call that keeps meeting it is told.
FAULTS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("status", {"status": 500}, {"server_error"}),
    ("status", {"status": 502}, {"server_error"}),
    ("status", {"status": 503}, {"server_error"}),
    ("status", {"status": 504}, {"server_error"}),
    ("reset", {"executed": False}, {"unreachable"}),
    ("reset", {"executed": True}, {"unreachable"}),
    ("cut_json", {"executed": True}, {"unreachable", "protocol_fault"}),
    ("cut_sse", {"executed": True}, {"unreachable", "protocol_fault"}),
    ("garbage", {}, {"protocol_fault"}),
    ("wrong_type", {}, {"protocol_fault"}),
    ("no_object", {}, {"protocol_fault"}),
    ("empty", {}, {"protocol_fault"}),
    ("wrong_id", {}, {"protocol_fault"}),
    ("accepted", {}, {"protocol_fault", "unreachable"}),
    ("no_event", {}, {"unreachable", "protocol_fault"}),
    ("garbage_event", {}, {"unreachable", "protocol_fault"}),
]
NAMES = [f"{kind}-{'-'.join(map(str, facts.values()))}".rstrip("-") for kind, facts, _ in FAULTS]


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_each_fault_of_one_answer_stays_with_its_call(tmp_path: Path, era: str) -> None:
    file = tmp_path / "journal"
    with HttpProcess(tmp_path, "--era", era, "--journal", str(file)) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            for name, (kind, facts, codes) in zip(NAMES, FAULTS, strict=True):
                sleeping = len(server.seen("tools/call"))
                gate = tmp_path / name
                bystander = asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 60, "gate": str(gate)}))
                await until(lambda before=sleeping: len(server.seen("tools/call")) > before)

                server.plan(kind, tool="echo", **facts)
                output = await hub.call("mcp_a_echo", {"text": name})
                assert output.result == name, (name, output.error)
                assert output.metadata.attempts == 2, name

                server.plan(kind, tool="echo", times=-1, **facts)
                output = await hub.call("mcp_a_echo", {"text": name})
                assert output.error is not None, name
                assert output.error.code in codes, (name, output.error)
                server.control(no_faults=True)

                server.plan(kind, tool="send", **facts)
                output = await hub.call("mcp_a_send", {"text": name})
                assert output.error is not None, name
                assert output.error.code == "uncertain", (name, output.error)
                assert journal(file).count(name) == (1 if facts.get("executed") else 0), name

                assert not bystander.done(), name
                gate.write_text("x")
                output = await bystander
                assert output.ok, (name, output.error)
                assert output.metadata.attempts == 1, f"{name} reached a call that had nothing to do with it"


async def test_401_is_a_state_with_a_cause_and_not_an_empty_list(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--token", "right-token") as server, HttpProcess(tmp_path) as other:
        async with open_hub(tmp_path) as hub:
            view = await hub.connectors.add("a", url=server.url, bearer="wrong-token", **QUICK)
            assert view.status.state == "needs_auth"
            assert view.status.cause
            assert view.status.hint
            assert view.status.next_attempt is None, "refused static credentials are not tried again"
            attempts = len(server.state()["seen"])
            await hub.connectors.add("b", url=other.url, **QUICK)
            assert (await hub.call("mcp_b_echo", {"text": "fine"})).ok
            assert len(server.state()["seen"]) == attempts
            view = await hub.connectors.update("a", bearer="right-token")
            output = await hub.call("mcp_a_echo", {"text": "in"})
            assert output.result == "in", output.error
            await state_is(hub, "a", "connected")
            shown = repr(await hub.connectors.get("a")) + repr(output)
            assert "right-token" not in shown


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_a_credential_that_is_revoked_later_is_needs_auth_too(tmp_path: Path, era: str) -> None:
    with HttpProcess(tmp_path, "--era", era) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            tools = len(hub.tools.list("a"))
            server.plan("status", method="*", times=-1, status=401)
            output = await hub.call("mcp_a_echo", {"text": "x"})
            assert output.error is not None
            assert output.error.code == "needs_auth"
            assert not output.error.retryable
            await state_is(hub, "a", "needs_auth")
            assert len(hub.tools.list("a")) == tools, "the catalog forgot the tools"
            server.control(no_faults=True)
            assert (await hub.call("mcp_a_echo", {"text": "x"})).ok
            await state_is(hub, "a", "connected")


async def test_403_is_forbidden_and_not_repeated(server: HttpProcess, tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **QUICK)
        before = len(server.seen("tools/call"))
        server.plan("status", status=403, times=-1)
        output = await hub.call("mcp_a_echo", {"text": "x"})
        assert output.error is not None
        assert output.error.code == "forbidden"
        assert len(server.seen("tools/call")) == before + 1
        server.control(no_faults=True)
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_429_waits_as_long_as_the_server_asks(server: HttpProcess, tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **QUICK)
        server.plan("status", status=429, headers={"Retry-After": "1"})
        started = time.monotonic()
        output = await hub.call("mcp_a_echo", {"text": "patient"})
        assert output.result == "patient", output.error
        assert 0.95 <= time.monotonic() - started < patient(3)


async def test_429_beyond_the_deadline_is_told_at_once(server: HttpProcess, tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **QUICK)
        server.plan("status", status=429, times=-1, headers={"Retry-After": "120"})
        started = time.monotonic()
        output = await hub.call("mcp_a_echo", {"text": "impatient"})
        assert output.error is not None
        assert output.error.code == "rate_limited"
        assert output.error.retryable
        assert output.error.retry_after == 120
        assert time.monotonic() - started < patient(2)


async def test_a_call_with_effects_is_never_repeated_after_a_server_error(
    server: HttpProcess, tmp_path: Path
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **QUICK)
        server.plan("status", status=500, executed=True)
        output = await hub.call("mcp_a_send", {"text": "perhaps"})
        assert output.error is not None
        assert output.error.code == "uncertain"
        assert journal(tmp_path / "journal") == ["perhaps"]


async def test_an_idle_restart_is_not_noticed_by_the_next_call(server: HttpProcess, tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **QUICK)
        await asyncio.to_thread(server.restart)
        # Not even one that must not be repeated: it was refused unseen, or it met an unknown session.
        output = await hub.call("mcp_a_send", {"text": "once"})
        assert output.ok, output.error
        assert journal(tmp_path / "journal") == ["once"]


async def test_a_restart_under_a_safe_call_is_survived(server: HttpProcess, tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **quick(retry={"tries": 5, "delay": 0.3}))
        gate = tmp_path / "gate"
        call = asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 60, "gate": str(gate)}))
        await until(lambda: len(server.seen("tools/call")) == 1)
        await asyncio.to_thread(server.restart)
        gate.write_text("x")
        output = await call
        assert output.ok, output.error


async def test_a_forgotten_session_is_opened_anew_without_a_word(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--era", "2025", "--journal", str(tmp_path / "journal")) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            for turn in range(3):
                server.control(forget_sessions=True)
                outputs = await asyncio.gather(
                    *(hub.call("mcp_a_send", {"text": f"{turn}.{number}"}) for number in range(10))
                )
                assert all(output.ok for output in outputs), [output.error for output in outputs]
            executed = journal(tmp_path / "journal")
            assert sorted(executed) == sorted(f"{turn}.{number}" for turn in range(3) for number in range(10))


async def test_a_plain_404_is_told_and_the_road_stays_open(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--era", "2026") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            server.plan("status", status=404, times=-1)
            output = await hub.call("mcp_a_echo", {"text": "x"})
            assert not output.ok
            server.control(no_faults=True)
            assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_a_server_that_refuses_for_a_while_is_reached_again(
    server: HttpProcess, tmp_path: Path
) -> None:
    async with open_hub(tmp_path) as hub:
        configuration = quick(retry={"tries": 6, "delay": 0.2})
        await hub.connectors.add("a", url=server.url, **configuration)
        server.control(refuse=0.6)
        await until(lambda: not listens(server.port))
        output = await hub.call("mcp_a_send", {"text": "after the pause"})
        assert output.ok, output.error
        assert journal(tmp_path / "journal") == ["after the pause"]


async def test_a_dead_server_is_unreachable_and_then_back(server: HttpProcess, tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **QUICK)
        tools = len(hub.tools.list("a"))
        await asyncio.to_thread(server.kill)
        output = await hub.call("mcp_a_send", {"text": "lost"})
        assert output.error is not None
        assert output.error.code == "unreachable"
        assert output.error.retryable
        assert len(hub.tools.list("a")) == tools
        server.start()
        output = await hub.call("mcp_a_send", {"text": "found"})
        assert output.ok, output.error
        assert journal(tmp_path / "journal") == ["found"]


async def test_a_hanging_answer_costs_its_caller_the_deadline_and_nobody_else(
    server: HttpProcess, tmp_path: Path
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", url=server.url, **QUICK)
        server.plan("hang", tool="send", times=5)
        server.plan("hang", method="notifications/cancelled", times=-1)
        hanging = [
            asyncio.ensure_future(hub.call("mcp_a_send", {"text": "x"}, timeout=patient(0.6)))
            for _ in range(5)
        ]
        started = time.monotonic()
        for turn in range(10):
            assert (await hub.call("mcp_a_echo", {"text": f"{turn}"})).ok
        assert time.monotonic() - started < patient(1)
        for output in await asyncio.gather(*hanging):
            assert output.error is not None
            assert output.error.code == "uncertain"
        assert time.monotonic() - started < patient(2)
        assert (await hub.call("mcp_a_echo", {"text": "after"})).ok
        assert journal(tmp_path / "journal") == []


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_an_http_answer_that_is_no_utf8_is_mended(tmp_path: Path, era: str) -> None:
    file = tmp_path / "journal"
    with HttpProcess(tmp_path, "--era", era, "--journal", str(file)) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            server.plan("invalid_utf8", executed=True)
            output = await hub.call("mcp_a_send", {"text": "once"})
            assert output.result == "sent once", output.error
            assert journal(file) == ["once"]
            assert (await hub.call("mcp_a_echo", {"text": "fine"})).ok


async def test_an_answer_that_drips_for_ever_ends_at_the_deadline(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            server.plan("drip", seconds=30)
            started = time.monotonic()
            output = await hub.call("mcp_a_echo", {"text": "x"}, timeout=patient(0.6))
            assert output.error is not None
            assert output.error.code == "timeout"
            assert time.monotonic() - started < patient(1.5)


async def test_a_frozen_http_server_is_met_with_deadlines_only(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            server.stop()
            try:
                output = await hub.call("mcp_a_echo", {"text": "x"}, timeout=0.5)
                assert output.error is not None
                assert output.error.code in ("timeout", "connect_timeout", "unreachable")
            finally:
                server.resume()
            assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_an_event_of_many_megabytes_is_read(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--sse") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            output = await hub.call("mcp_a_big", {"bytes": 5 * MEGABYTE})
            assert output.ok, output.error
            assert output.metadata.truncated


@pytest.mark.parametrize("answers", [(), ("--sse",)])
async def test_an_http_answer_over_the_limit_is_refused(tmp_path: Path, answers: tuple[str, ...]) -> None:
    with HttpProcess(tmp_path, *answers) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK, max_message_bytes=MEGABYTE)
            output = await hub.call("mcp_a_big", {"bytes": 3 * MEGABYTE})
            assert output.error is not None
            assert output.error.code == "protocol_fault"
            assert (await hub.call("mcp_a_echo", {"text": "fine"})).ok


async def test_a_redirect_to_another_host_takes_no_credential_along(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--token", "secret-word") as server, HttpProcess(tmp_path) as stranger:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, bearer="secret-word", **QUICK)
            server.plan("redirect", times=-1, location=f"{stranger.origin}/moved")
            output = await hub.call("mcp_a_echo", {"text": "x"})
            assert output.error is not None
            assert stranger.origin in output.error.message, "the person is not told where it wants to go"
            seen = stranger.state()["seen"]
            assert not [request for request in seen if "secret-word" in str(request)]


async def test_a_cancelled_call_frees_the_http_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with HttpProcess(tmp_path, "--era", "2026", "--log", str(log)) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            call = asyncio.ensure_future(hub.call("mcp_a_sleep", {"seconds": 30}))
            await until(lambda: len(server.seen("tools/call")) == 1)
            call.cancel()
            await asyncio.wait([call])
            await until(lambda: "cancelled" in log.read_text())
            assert (await hub.call("mcp_a_echo", {"text": "usable"})).ok


async def test_a_session_is_closed_when_its_connection_is(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--era", "2025") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            assert server.state()["sessions"] == 1
            await hub.connectors.disconnect("a")
            await until(lambda: server.state()["sessions"] == 0)


@pytest.mark.parametrize("words", [("--no-session",), ("--no-get",), ("--no-session", "--no-get", "--sse")])
async def test_plainer_servers_of_the_2025_era_work_too(tmp_path: Path, words: tuple[str, ...]) -> None:
    with HttpProcess(tmp_path, "--era", "2025", *words) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            assert (await hub.call("mcp_a_echo", {"text": "plain"})).result == "plain"
