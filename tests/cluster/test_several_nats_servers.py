"""Three servers of NATS: one of them is lost, and nothing of what nodes do is."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import nats
import pytest

from cluster.nats_server import three_servers
from cluster.nodes import KEY
from dragoman import Hub
from dragoman.settings import Settings
from patience import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
STDIO = str(Path(__file__).parents[1] / "servers" / "stdio_server.py")


async def test_one_of_three_servers_is_lost_and_nothing_else(tmp_path: Path, postgres_url: str) -> None:
    servers = three_servers(tmp_path)
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server)
        urls = tuple(server.url for server in servers)
        hubs = [
            await stack.enter_async_context(
                Hub(
                    Settings(
                        home=tmp_path / f"node{number}",
                        key=KEY,
                        database_url=postgres_url,
                        cluster_url=urls,
                    )
                )
            )
            for number in range(2)
        ]
        assert {*(await replicas(urls)).values()} == {3}, "whatever nodes keep in NATS, each server has"
        journal = tmp_path / "journal"
        args = ["-S", STDIO, "--journal", str(journal)]
        await hubs[0].connectors.add("box", command=sys.executable, args=args, sandbox="none")
        await until(lambda: sees(hubs[1], "mcp_box_send"))
        for number, server in enumerate(servers):
            server.kill()
            for hub in hubs:
                sent = await until_answered(hub, f"{number} by {hub.settings.home.name}")
                assert sent, "each is called in the end"
            await server.start()
            await until(lambda: all_connected(hubs))
        wanted = [f"{number} by node{node}" for number in range(3) for node in range(2)]
        assert journal.read_text().split("\n")[:-1] == wanted, "and none of them twice"


async def replicas(urls: tuple[str, ...]) -> dict[str, int]:
    """How many servers keep each stream; a bucket is one, and so is the queue of runs."""
    async with await nats.connect([*urls]) as client:
        streams = await client.jetstream().streams_info()
    found = {str(one.config.name): one.config.num_replicas or 1 for one in streams}
    assert len(found) >= 4, found
    return found


async def until_answered(hub: Hub, text: str) -> bool:
    """Asks again only where nothing was done, as the error says."""
    for _ in range(100):
        output = await hub.call("mcp_box_send", {"text": text})
        if output.ok:
            return True
        assert output.error is not None
        assert output.error.code == "cluster_unavailable", output.error
        await asyncio.sleep(0.1)
    return False


def sees(hub: Hub, tool: str) -> bool:
    return any(one.name == tool for one in hub.tools.list())


async def all_connected(hubs: list[Hub]) -> bool:
    return all([(await hub.cluster.status()).is_connected for hub in hubs])
