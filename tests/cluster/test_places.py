"""Connections with state over several nodes in this process, joined by a real NATS server."""

from pathlib import Path
from typing import Any

import pytest

from cluster.nats_server import NatsServer
from cluster.nodes import open_hubs
from dragoman import Hub
from patience import until
from servers.hubs import quick
from servers.processes import starts, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]


async def knows(hub: Hub, count: int) -> bool:
    return len(await hub._runtime.cluster.nodes()) == count


async def add(hub: Hub, others: list[Hub], slug: str, **facts: Any) -> None:
    await hub.connectors.add(slug, **facts)
    for other in others:
        await until(lambda other=other: has(other, slug))


def has(hub: Hub, slug: str) -> bool:
    return any(tool.slug == slug for tool in hub.tools.list())


async def test_one_server_serves_every_node(tmp_path: Path, postgres_url: str) -> None:
    log = tmp_path / "log"
    async with (
        NatsServer(tmp_path / "nats") as nats,
        open_hubs(tmp_path, postgres_url, nats, count=3) as hubs,
    ):
        for hub in hubs:
            await until(lambda hub=hub: knows(hub, 3))
        await add(hubs[0], hubs[1:], "box", **quick(**stdio("--log", str(log))))
        counts = [(await hub.call("mcp_box_count", {})) for hub in hubs * 2]
        print([(one.result, one.error) for one in counts])
        assert all(one.ok for one in counts)
        assert starts(log) == 1
