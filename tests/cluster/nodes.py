"""Nodes as tests need them."""

from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from cluster.nats_server import NatsServer
from dragoman import Hub
from dragoman.cluster import Alone, Node
from dragoman.settings import Settings

KEY = b64encode(b"k" * 32).decode()


def node(name: str = "node") -> Node:
    return Node(id=f"{name}-{uuid4().hex[:6]}", host="here", pid=1, version="1", started_at=datetime.now(UTC))


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
