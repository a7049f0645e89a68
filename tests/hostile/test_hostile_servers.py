"""Servers that mean harm: what they send is limited, their neighbours work, and they can be switched off."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import psutil
import pytest

from patience import deadline, patient, until
from servers.hubs import open_hub, quick
from servers.processes import HttpProcess, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.fault]
HERE = Path(__file__).parent
MEGABYTE = 1024 * 1024

# Of each kind: the codes that a call of it may end with, and what the connector is given besides.
KINDS: dict[str, tuple[set[str], dict[str, Any]]] = {
    "endless-comments": (set(), {}),
    "endless-events": (set(), {}),
    "slow-drip": ({"timeout"}, {}),
    "long-line": ({"protocol_fault"}, {}),
    "gzip-bomb": ({"protocol_fault"}, {}),
    "deflate-bomb": ({"protocol_fault"}, {}),
    "brotli-bomb": ({"protocol_fault", "unreachable"}, {}),
    "header-flood": ({"protocol_fault", "unreachable"}, {}),
    "endless-continue": ({"protocol_fault", "unreachable", "timeout"}, {}),
    "many-tools": (set(), {"max_tools": 500, "max_message_bytes": 64 * MEGABYTE}),
    "notification-storm": (set(), {}),
    "request-storm": (set(), {}),
    "deep-nesting": ({"protocol_fault"}, {}),
    "wrong-ids": ({"protocol_fault"}, {}),
    "late-answers": ({"timeout"}, {}),
    "reconnect-storm": ({"timeout"}, {}),
}


def hostile(folder: Path, kind: str) -> HttpProcess:
    return HttpProcess(folder, kind, program=str(HERE / "hostile_server.py"))


def memory() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


@pytest.mark.parametrize("kind", KINDS)
async def test_a_hostile_server_harms_nobody_and_can_be_switched_off(tmp_path: Path, kind: str) -> None:
    codes, more = KINDS[kind]
    facts = quick(**{"request_timeout": patient(2), "max_message_bytes": MEGABYTE, **more})
    with hostile(tmp_path, kind) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("good", **stdio(), **quick())
            before = memory()
            await hub.connectors.add("bad", url=server.url, **facts)
            call = asyncio.ensure_future(hub.call("mcp_bad_echo", {"text": "x"}))
            for number in range(20):
                output = await hub.call("mcp_good_echo", {"text": f"{number}"})
                assert output.ok, output.error
            output = await call
            if codes:
                assert output.error is not None, output
                assert output.error.code in codes, output.error
            async with deadline(2):
                await hub.connectors.disable("bad")
            await until(lambda: server.state()["open"] == 0)
            assert (await hub.call("mcp_good_echo", {"text": "after"})).ok
            assert memory() - before < 150 * MEGABYTE
            # What was read, what waits in sockets, and what one reconnection or another brought.
            assert server.state()["sent"] < 100 * MEGABYTE


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("endless-comments", "more than 1,000 messages a second"),
        ("endless-events", "more than 1,000 messages a second"),
        ("request-storm", "requests at once"),
    ],
)
async def test_a_wire_over_its_rate_is_lost_with_the_cause_said(
    tmp_path: Path, kind: str, cause: str
) -> None:
    with hostile(tmp_path, kind) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("bad", url=server.url, **quick(auto_reconnect=False))

            async def is_told() -> bool:
                return cause in ((await hub.connectors.get("bad")).status.cause or "")

            await until(is_told)
            await until(lambda: server.state()["open"] == 0)


async def test_a_list_of_too_many_tools_is_cut_and_says_so(tmp_path: Path) -> None:
    with hostile(tmp_path, "notification-storm") as server:
        async with open_hub(tmp_path) as hub:
            view = await hub.connectors.add("bad", url=server.url, **quick(max_tools=100))
            assert view.tools == 100
            assert view.skipped == ("every tool after the first 100: raise max_tools to have more",)


async def test_an_error_for_another_request_is_no_answer(tmp_path: Path) -> None:
    with hostile(tmp_path, "wrong-ids") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("bad", url=server.url, **quick())
            output = await hub.call("mcp_bad_echo", {"text": "one"})
            assert output.error is not None
            assert output.error.code == "protocol_fault"
            assert "another request" in output.error.message
            assert output.metadata.attempts == 3, "it was tried three times, and says so"
