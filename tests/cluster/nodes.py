"""Nodes as tests need them."""

from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cluster.nats_server import NatsServer
from dragoman import Hub
from dragoman.cluster import Alone, Node
from dragoman.cluster.places import HELD_FOR, OVER_AFTER
from dragoman.settings import Settings
from dragoman.vault.keys import Key, KeyRing
from dragoman.vault.vault import Vault
from patience import patient, until
from servers.hubs import runtime_of
from store.memory_store import memory_store

KEY = b64encode(b"k" * 32).decode()


def node(name: str = "node") -> Node:
    return Node(id=f"{name}-{uuid4().hex[:6]}", host="here", pid=1, version="1", started_at=datetime.now(UTC))


def keys() -> Vault:
    """Of an installation that has no secrets."""
    return Vault(memory_store().connectors, KeyRing(Key(b64decode(KEY))))


def alone() -> Alone:
    """One process that nobody else tells anything."""
    return Alone(node())


@asynccontextmanager
async def open_hubs(
    folder: Path, database_url: str, nats: NatsServer | None, count: int = 2, **settings: Any
) -> AsyncGenerator[list[Hub]]:
    """Nodes of one installation, in this process, each with a home of its own."""
    cluster_url = () if nats is None else (nats.url,)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                Hub(
                    Settings(
                        home=folder / f"node{number}",
                        key=KEY,
                        database_url=database_url,
                        cluster_url=cluster_url,
                        **settings,
                    )
                )
            )
            for number in range(count)
        ]


@contextmanager
def patient_leases() -> Generator[None]:
    """A busy machine may stop this process for longer than a lease is.

    All nodes must be in it: two that know different lengths could hold one place.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.cluster.places.HELD_FOR", patient(HELD_FOR))
        patch.setattr("dragoman.cluster.nats_places.OVER_AFTER", patient(OVER_AFTER))
        yield


class Nodes:
    """The nodes of one installation. `holder` has the connection of a connector, `others` have not."""

    def __init__(self, hubs: list[Hub], nats: NatsServer) -> None:
        self.hubs = hubs
        self.nats = nats

    async def add(self, slug: str, **facts: Any) -> None:
        await self.hubs[0].connectors.add(slug, approval="never", shared=True, **facts)
        for hub in self.hubs:
            await until(lambda hub=hub: any(tool.slug == slug for tool in hub.tools.list()))

    async def find_holder(self, slug: str) -> Hub | None:
        found = {one.connector: one.node for one in (await self.hubs[0].cluster.places())}
        return next((hub for hub in self.hubs if id_of(hub) == found.get(slug)), None)

    async def holder(self, slug: str) -> Hub:
        found = await self.find_holder(slug)
        assert found is not None
        return found

    async def other(self, slug: str) -> Hub:
        """A node that does not hold it."""
        holder = await self.holder(slug)
        return next(hub for hub in self.hubs if hub is not holder)


def id_of(hub: Hub) -> str:
    return runtime_of(hub).cluster.node.id


async def knows(hub: Hub, count: int) -> bool:
    return len(await runtime_of(hub).cluster.nodes()) == count


@asynccontextmanager
async def open_nodes(
    folder: Path, database_url: str, count: int = 2, **settings: Any
) -> AsyncGenerator[Nodes]:
    async with AsyncExitStack() as stack:
        stack.enter_context(patient_leases())
        nats = await stack.enter_async_context(NatsServer(folder / "nats"))
        hubs = await stack.enter_async_context(open_hubs(folder, database_url, nats, count=count, **settings))
        for hub in hubs:
            await until(lambda hub=hub: knows(hub, count))
        yield Nodes(hubs, nats)
