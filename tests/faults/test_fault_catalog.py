"""The list of tools under faults: it is never late, never frozen and never shorter than it should be."""

import asyncio
import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from patience import patient
from servers.hubs import QUICK, listed, open_hub, quick, until
from servers.processes import HttpProcess, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.fault]


@contextmanager
def served(tmp_path: Path, kind: str) -> Generator[dict[str, Any]]:
    """How to reach a server of this kind, while it runs."""
    transport, _, era = kind.partition("-")
    if transport == "stdio":
        yield stdio("--era", era)
    elif transport == "sse":
        with HttpProcess(tmp_path, program="sse_server.py") as server:
            yield {"url": server.url}
    elif transport == "sdk":
        with HttpProcess(tmp_path, "--transport", "http", program="sdk_server.py") as server:
            yield {"url": server.url}
    else:
        with HttpProcess(tmp_path, "--era", era) as server:
            yield {"url": server.url}


def names(hub: Hub, slug: str) -> set[str]:
    return {tool.original_name for tool in hub.tools.list(slug)}


@pytest.mark.parametrize(
    "kind", ["stdio-2025", "stdio-2026", "http-2025", "http-2026", "sse-2025", "sdk-2026"]
)
async def test_a_tool_that_the_server_adds_appears_by_itself(tmp_path: Path, kind: str) -> None:
    with served(tmp_path, kind) as words:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", **words, **QUICK)
            assert "fresh" not in names(hub, "a")
            assert (await hub.call("mcp_a_add_tool", {"name": "fresh"})).ok
            await until(lambda: "fresh" in names(hub, "a"))
            assert (await hub.call("mcp_a_fresh", {})).ok


@pytest.mark.parametrize("kind", ["stdio-2025", "stdio-2026", "http-2025", "http-2026"])
async def test_a_tool_that_the_server_removes_or_changes_is_seen(tmp_path: Path, kind: str) -> None:
    with served(tmp_path, kind) as words:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", **words, **QUICK)
            assert (await hub.call("mcp_a_add_tool", {"name": "fleeting"})).ok
            await until(lambda: "fleeting" in names(hub, "a"))
            assert (await hub.call("mcp_a_remove_tool", {"name": "fleeting"})).ok
            await until(lambda: "fleeting" not in names(hub, "a"))
            output = await hub.call("mcp_a_fleeting", {})
            assert output.error is not None
            assert output.error.code == "not_found"
            assert (await hub.call("mcp_a_change_tool", {"name": "echo"})).ok
            await until(lambda: hub.tools.get("mcp_a_echo").version == 2)
            versions = await hub.tools.versions("mcp_a_echo")
            assert "changed 1 times" in versions[-1].diff


@pytest.mark.parametrize("kind", ["http-2025", "http-2026"])
async def test_changes_are_heard_again_after_a_restart(tmp_path: Path, kind: str) -> None:
    with HttpProcess(tmp_path, "--era", kind[-4:]) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            await asyncio.to_thread(server.restart)
            assert (await hub.call("mcp_a_echo", {"text": "x"})).ok

            async def is_listening() -> bool:
                state = server.state()
                return state["streams"] + state["listeners"] >= 1

            await until(is_listening, within=8)
            assert (await hub.call("mcp_a_add_tool", {"name": "fresh"})).ok
            await until(lambda: "fresh" in names(hub, "a"))


async def test_a_server_that_restarts_with_other_tools_is_listed_anew(tmp_path: Path) -> None:
    extra = tmp_path / "tools.json"
    extra.write_text('["first"]')
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--tools-file", str(extra)), **QUICK)
        assert "first" in names(hub, "a")
        extra.write_text('["second"]')
        pid = (await hub.connectors.get("a")).status.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await hub.call("mcp_a_echo", {"text": "x"})
        await until(lambda: "second" in names(hub, "a") and "first" not in names(hub, "a"))


async def test_a_pinned_tool_that_changed_waits_for_a_person(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK, pin="block")
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok
        await hub.call("mcp_a_change_tool", {"name": "echo"})
        await until(lambda: hub.tools.get("mcp_a_echo").version == 2)
        output = await hub.call("mcp_a_echo", {"text": "x"})
        assert output.error is not None
        assert output.error.code == "tool_changed"
        assert output.error.hint
        assert (await hub.call("mcp_a_add", {"a": 1, "b": 2})).ok
        await hub.tools.accept("mcp_a_echo")
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_a_list_in_pages_is_read_to_its_end(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        await hub.connectors.add("b", **stdio("--page", "4"), **QUICK)
        assert names(hub, "a") == names(hub, "b")


@pytest.mark.timeout(60)
async def test_one_hanging_server_among_ten_delays_nobody(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        async with asyncio.TaskGroup() as adding:
            for number in range(9):
                adding.create_task(hub.connectors.add(f"c{number}", **stdio(), **QUICK))
        slow = quick(connect_timeout=patient(30))
        hanging = asyncio.ensure_future(hub.connectors.add("slow", **stdio("--never-initialise"), **slow))

        async def is_connecting() -> bool:
            views = {view.connector.slug: view for view in await listed(hub)}
            return "slow" in views and views["slow"].status.state == "connecting"

        await until(is_connecting)
        started = time.monotonic()
        tools = hub.tools.list()
        outputs = await asyncio.gather(
            *(hub.call(f"mcp_c{number}_echo", {"text": f"{number}-th"}) for number in range(9))
        )
        views = await listed(hub)
        assert time.monotonic() - started < patient(1)
        assert all(output.ok for output in outputs)
        assert {tool.slug for tool in tools} == {f"c{number}" for number in range(9)}
        assert len(views) == 10
        for number in range(9):
            pid = views[number].status.pid
            assert views[number].connector.slug == "slow" or pid is not None
        hanging.cancel()
        await asyncio.wait([hanging])


async def test_a_frozen_server_among_ten_delays_nobody(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        async with asyncio.TaskGroup() as adding:
            for number in range(10):
                adding.create_task(hub.connectors.add(f"c{number}", **stdio(), **QUICK))
        pid = (await hub.connectors.get("c0")).status.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        stuck = [
            asyncio.ensure_future(hub.call("mcp_c0_echo", {"text": "x"}, timeout=patient(2)))
            for _ in range(20)
        ]
        started = time.monotonic()
        for turn in range(5):
            outputs = await asyncio.gather(
                *(hub.call(f"mcp_c{number}_echo", {"text": f"{turn}"}) for number in range(1, 10))
            )
            assert all(output.ok for output in outputs)
            assert len({tool.slug for tool in hub.tools.list()}) == 10
        assert time.monotonic() - started < patient(1)
        assert not any(call.done() for call in stuck), "the others waited for the frozen one"
        await hub.connectors.refresh("c1")
        outputs = await asyncio.gather(*stuck)
        assert {output.error.code for output in outputs if output.error} == {"timeout"}


async def test_long_and_odd_tool_names_stay_apart_and_callable(tmp_path: Path) -> None:
    extra = tmp_path / "tools.json"
    long = "a_very_long_tool_name_that_goes_on_and_on_and_is_the_same_until_its_very_end"
    odd = [f"{long}_one", f"{long}_two", "with.dots/and slashes", "ünï"]
    extra.write_text(str(odd).replace("'", '"'))
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--tools-file", str(extra)), **QUICK)
        tools = [tool for tool in hub.tools.list("a") if tool.original_name in odd]
        assert len({tool.name for tool in tools}) == len(odd)
        assert all(len(tool.name) <= 64 for tool in tools)
        for tool in tools:
            output = await hub.call(tool.name, {"text": "hello"})
            assert output.result == f"{tool.original_name} says hello"


async def test_a_result_of_megabytes_is_cut_with_a_handle_to_the_rest(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK, max_result_bytes=10_000)
        output = await hub.call("mcp_a_big", {"bytes": 2_000_000})
        assert output.ok
        assert output.metadata.truncated
        assert len(repr(output)) < 50_000
        assert output.metadata.handle is not None
        kept = await hub.result(output.metadata.handle)
        assert kept.body.count(b"x") >= 2_000_000


async def test_a_failed_refresh_keeps_the_tools_that_are_known(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server:
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=server.url, **QUICK)
            known = names(hub, "a")
            server.plan("status", method="tools/list", times=-1, status=500)
            await asyncio.gather(hub.connectors.refresh("a"), return_exceptions=True)
            assert names(hub, "a") == known
            assert (await hub.call("mcp_a_echo", {"text": "x"})).ok
            server.control(no_faults=True)
            await hub.connectors.refresh("a")
            assert (await hub.connectors.get("a")).catalog == "ready"
