"""Servers that mean harm: what they send is limited, their neighbours work, and they can be switched off."""

import asyncio
import gc
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman.errors import DragomanError
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
    "brotli-bomb": ({"protocol_fault"}, {}),
    "header-flood": ({"protocol_fault", "unreachable"}, {}),
    "endless-continue": ({"unreachable"}, {}),
    "endless-chunk": ({"unreachable"}, {}),
    "costly-schemas": (set(), {}),
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


@pytest.mark.parametrize("how", ["disable", "remove", "close"])
@pytest.mark.parametrize("kind", ["endless-comments", "endless-events"])
async def test_a_flood_that_is_allowed_ends_when_we_say_so(tmp_path: Path, kind: str, how: str) -> None:
    generous = quick(max_messages_per_second=10**9, max_bytes_per_second=10**12)
    with hostile(tmp_path, kind) as server:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(open_hub(tmp_path))
            await hub.connectors.add("bad", url=server.url, **generous)
            await until(lambda: server.state()["sent"] > 2 * MEGABYTE)
            assert (await hub.connectors.get("bad")).status.state == "connected"
            if how == "close":
                async with deadline(10):
                    await stack.aclose()
            else:
                async with deadline(2):
                    await (hub.connectors.disable if how == "disable" else hub.connectors.remove)("bad")
            await until(lambda: server.state()["open"] == 0)


@pytest.mark.parametrize("how", ["disable", "remove"])
async def test_a_program_that_wants_to_stay_holds_up_nobody(tmp_path: Path, how: str) -> None:
    server = stdio()
    deaf = ["-c", "trap '' TERM; exec \"$@\"", "sh", server["command"], *server["args"]]
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("deaf", command="sh", args=deaf, sandbox="none", **quick())
        assert view.status.pid is not None
        process = psutil.Process(view.status.pid)
        process.send_signal(signal.SIGTERM)
        assert (await hub.call("mcp_deaf_echo", {"text": "still here"})).ok
        async with deadline(2):
            await (hub.connectors.disable if how == "disable" else hub.connectors.remove)("deaf")
        await until(lambda: not process.is_running())


async def test_a_hub_closes_in_time_whatever_its_servers_do(tmp_path: Path) -> None:
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    program: dict[str, Any] = {"command": sys.executable, "args": ["-S", "-E", "-c", deaf]}
    with hostile(tmp_path, "wrong-ids") as flood, hostile(tmp_path, "slow-drip") as drip:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(open_hub(tmp_path))
            generous: dict[str, Any] = {"max_messages_per_second": 10**9, "max_bytes_per_second": 10**12}
            await hub.connectors.add("flood", url=flood.url, **generous)
            await hub.connectors.add("drip", url=drip.url)
            await hub.connectors.add("good", **stdio())
            under_way: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(hub.call("mcp_flood_echo", {"text": "many"})),
                asyncio.ensure_future(hub.call("mcp_drip_echo", {"text": "x"})),
                asyncio.ensure_future(hub.call("mcp_good_sleep", {"seconds": 60})),
                asyncio.ensure_future(hub.connectors.add("deaf", **program)),
            ]
            await until(lambda: flood.state()["open"] == 1 and drip.state()["open"] == 2)
            async with deadline(10):
                await stack.aclose()
                await asyncio.gather(*under_way, return_exceptions=True)


async def test_a_compression_that_nobody_asked_for_is_refused_with_its_name(tmp_path: Path) -> None:
    with hostile(tmp_path, "brotli-bomb") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("bad", url=server.url, **quick())
            error = (await hub.call("mcp_bad_echo", {"text": "x"})).error
            assert error is not None
            assert "cannot be read: Can not decode content-encoding: brotli (br)" in error.message
            assert server.url not in error.message
            asked = {request["encodings"] for request in server.state()["requests"]}
            assert asked == {"gzip, deflate"}


async def test_a_list_of_too_many_tools_is_cut_and_says_so(tmp_path: Path) -> None:
    with hostile(tmp_path, "notification-storm") as server:
        async with open_hub(tmp_path) as hub:
            view = await hub.connectors.add("bad", url=server.url, **quick(max_tools=100))
            assert view.tools == 100
            assert view.skipped == ("every tool after the first 100: raise max_tools to have more",)


async def test_a_list_that_is_too_large_is_not_taken_for_none(tmp_path: Path) -> None:
    with hostile(tmp_path, "notification-storm") as server:
        async with open_hub(tmp_path) as hub:
            view = await hub.connectors.add("bad", url=server.url, **quick(max_message_bytes=10_000))
            assert (view.tools, view.skipped) == (
                0,
                ("every tool: the list cannot be read; refreshing it says why",),
            )
            with pytest.raises(DragomanError, match="an answer of more than 10,000 bytes"):
                await hub.connectors.refresh("bad")


async def test_an_error_for_another_request_is_no_answer(tmp_path: Path) -> None:
    with hostile(tmp_path, "wrong-ids") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("bad", url=server.url, **quick())
            output = await hub.call("mcp_bad_echo", {"text": "one"})
            assert output.error is not None
            assert output.error.code == "protocol_fault"
            assert "another request" in output.error.message
            assert output.metadata.attempts == 3, "it was tried three times, and says so"


async def test_a_server_without_a_standing_stream_has_a_full_session(tmp_path: Path) -> None:
    with hostile(tmp_path, "asks-back") as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("good", url=server.url, **quick())
            output = await hub.call("mcp_good_echo", {"text": "asked and answered"})
            assert output.result == "asked and answered", output.error
            output = await hub.call("mcp_good_echo", {"text": "never"}, timeout=0.3)
            assert output.error is not None
            assert output.error.code == "timeout"

            def seen() -> list[dict[str, str]]:
                return server.state()["requests"]

            await until(lambda: "notifications/cancelled" in [request["method"] for request in seen()])
            await hub.connectors.remove("good")
            await until(lambda: seen()[-1]["verb"] == "DELETE")
            methods = [request["method"] for request in seen()]
            later = seen()[methods.index("initialize") + 1 :]
            assert {request["verb"] for request in later} == {"POST", "GET", "DELETE"}
            assert {request["version"] for request in later} == {"2025-11-25"}


STDIO = {
    "lines": "while True: out.write(b'{\\n' * 1000)",
    "blank-lines": "while True: out.write(b'\\n' * 1000)",
    "long-line": "while True: out.write(b'x' * 65536)",
    "nesting": "out.write(b'[' * 100_000 + b']' * 100_000 + b'\\n'); out.flush(); read()",
    "batches": "out.write(b'[' + b'1,' * 400_000 + b'1]\\n'); out.flush(); read()",
    "errors": "while True: sys.stderr.buffer.write(b'oh\\n' * 1000)",
}


@pytest.mark.parametrize("kind", STDIO)
async def test_a_flooding_program_harms_nobody_and_can_be_switched_off(tmp_path: Path, kind: str) -> None:
    program = f"import sys; out = sys.stdout.buffer; read = sys.stdin.buffer.read\n{STDIO[kind]}"
    facts = quick(connect_timeout=patient(2), max_message_bytes=MEGABYTE)
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("good", **stdio(), **quick())
        before = memory()
        adding = asyncio.ensure_future(
            hub.connectors.add("bad", command=sys.executable, args=["-S", "-E", "-c", program], **facts)
        )
        for number in range(20):
            assert (await hub.call("mcp_good_echo", {"text": f"{number}"})).ok
        status = (await adding).status
        assert status.cause, status
        assert kind == "errors" or "did not answer" not in status.cause, (
            "it is cut off before its time is over"
        )
        async with deadline(2):
            await hub.connectors.disable("bad")
        assert (await hub.call("mcp_good_echo", {"text": "after"})).ok
        assert memory() - before < 100 * MEGABYTE


async def test_a_call_under_way_does_not_hold_up_who_disables_its_connector(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("slow", **stdio(), **quick(request_timeout=patient(10)))
        gate = tmp_path / "gate"
        call = asyncio.ensure_future(hub.call("mcp_slow_sleep", {"seconds": 60, "gate": str(gate)}))

        async def is_under_way() -> bool:
            return (await hub.connectors.get("slow")).status.in_flight == 1

        await until(is_under_way)
        async with deadline(2):
            await hub.connectors.disable("slow")
        assert not call.done()
        gate.write_text("x")
        assert (await call).ok, "it finishes in the background"
