"""Limits of a connector count over all nodes, whichever of them makes the calls."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cluster.nodes import alone, id_of, open_nodes
from dragoman import Hub
from dragoman.access.shared_limits import SharedLimits
from dragoman.errors import StoreUnavailable
from dragoman.scope import Caller
from dragoman.store.clock import Clock
from patience import deadline, give_time, patient, until
from servers.hubs import quick
from servers.processes import HttpProcess, read_log, running, stdio
from store.memory_store import MemoryUsage, Tables
from store.store_values import a_connector

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]


def calls_of(log: Path, tool: str) -> int:
    return sum(one.get("tool") == tool for one in read_log(log))


async def slept(hub: Hub, gate: Path) -> bool:
    return (await hub.call("mcp_web_sleep", {"seconds": 600, "gate": str(gate)})).ok


async def test_calls_at_once_are_counted_over_all_nodes_with_nats_and_without(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setattr("dragoman.access.shared_limits._RENEW_EVERY", 0.5)
    with HttpProcess(tmp_path, "--era", "2026", "--log", str(log)) as server:
        async with open_nodes(tmp_path, postgres_url, count=3) as nodes:
            await nodes.add("web", **quick(url=server.url, max_concurrency=4, request_timeout=patient(60)))
            for hub in nodes.hubs * 4:
                assert (await hub.call("mcp_web_echo", {"text": "x"})).ok

            async def burst(number: int) -> None:
                gate, before = tmp_path / f"gate{number}", calls_of(log, "sleep")
                calls = [asyncio.create_task(slept(hub, gate)) for hub in nodes.hubs * 3]
                await until(lambda: calls_of(log, "sleep") == before + 4, within=20)
                await give_time(0.5)
                assert calls_of(log, "sleep") == before + 4, "no node has a limit of its own"
                gate.write_text("x")
                assert await asyncio.gather(*calls) == [True] * 9

            await burst(1)
            nodes.nats.kill()
            await burst(2)
            await nodes.nats.start()

            # Who has none is given those of a node that needs them no more.
            first, second, _ = nodes.hubs
            await first.connectors.update("web", max_concurrency=1)
            for hub in nodes.hubs:
                await until(lambda hub=hub: limited_to(hub, 1))
            for hub in (first, second) * 3:
                assert (await hub.call("mcp_web_echo", {"text": "x"})).ok
            gate = tmp_path / "gate3"
            before = calls_of(log, "sleep")
            slow = asyncio.create_task(slept(first, gate))
            await until(lambda: calls_of(log, "sleep") == before + 1)
            refused = await second.call("mcp_web_echo", {"text": "x"}, timeout=0.3)
            assert refused.error is not None
            assert refused.error.code == "limit_reached"
            assert "over all nodes (1)" in refused.error.message
            gate.write_text("x")
            assert await slow


async def limited_to(hub: Hub, count: int) -> bool:
    return (await hub.connectors.get("web")).connector.configuration.max_concurrency == count


async def test_open_connections_are_counted_over_all_nodes_and_an_unused_one_makes_room(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    async with open_nodes(tmp_path, postgres_url) as nodes:
        await nodes.add(
            "box", **quick(**stdio("--log", str(log)), max_servers=1, request_timeout=patient(60))
        )
        # A place follows from the names of node and person, and a node's name is new each time:
        # four persons may all have theirs on one node. Each node has its turn before it goes on.
        everyone = {id_of(hub) for hub in nodes.hubs}
        users: list[Caller] = []
        held: set[str] = set()
        while len(users) < 4 or held != everyone:
            assert len(users) < 100, f"only {held} of {everyone} ever had the place"
            users.append(Caller(user=f"user{len(users)}"))
            assert (await nodes.hubs[0].acting_for(users[-1]).call("mcp_box_echo", {"text": "x"})).ok
            await until(lambda: len(running(log)) == 1)
            held |= {one.node for one in await nodes.hubs[0].cluster.places()}

        gate = tmp_path / "gate"
        busy = asyncio.create_task(
            nodes.hubs[0].acting_for(users[0]).call("mcp_box_sleep", {"seconds": 600, "gate": str(gate)})
        )
        await until(lambda: calls_of(log, "sleep") == 1)
        monkeypatch.setattr("dragoman.access.shared_limits._ROOM_WITHIN", 0.5)
        for user in users[1:4]:
            refused = await nodes.hubs[1].acting_for(user).call("mcp_box_echo", {"text": "x"})
            assert refused.error is not None
            assert refused.error.code == "limit_reached", refused.error
        assert len(running(log)) == 1
        gate.write_text("x")
        assert (await busy).ok


class AwayUsage(MemoryUsage):
    async def hold_slots(self, *_: Any, **__: Any) -> Any:
        raise StoreUnavailable("the database does not answer")


async def test_who_wants_a_slot_while_the_store_is_away_is_told_so_soon() -> None:
    async def close_idle(_: str) -> bool:
        return False

    connector = a_connector("web")
    limits = SharedLimits(AwayUsage(Tables()), Clock(), alone(), lambda _: False, close_idle)
    async with limits.opened():
        later = asyncio.get_running_loop().time() + patient(120)
        with pytest.raises(StoreUnavailable, match="does not answer"):
            async with deadline(30):
                await limits.gate(connector).enter(connector, later)
        assert limits.gate(connector).waiting == 0
