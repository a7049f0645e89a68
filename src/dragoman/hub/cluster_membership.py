"""This process as a node of the cluster that the settings name, or alone."""

import os
import platform
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from secrets import token_hex

from dragoman import extras
from dragoman.background_tasks import Supervisor
from dragoman.cluster import Alone, Cluster, Node
from dragoman.errors import InvalidConfig
from dragoman.scope import LOCAL_WORKSPACE
from dragoman.settings import Settings
from dragoman.store import Store
from dragoman.telemetry.redaction import Redactor
from dragoman.vault import Vault


@asynccontextmanager
async def open_cluster(
    settings: Settings, store: Store, vault: Vault, redactor: Redactor, supervisor: Supervisor
) -> AsyncGenerator[Cluster]:
    """A node while the block runs. `ClusterFault` or `InvalidConfig` say why it cannot be one."""
    node = Node(
        id=token_hex(8),
        host=platform.node(),
        pid=os.getpid(),
        version=version("dragoman"),
        started_at=datetime.now(UTC),
        roles=settings.roles,
    )
    if not settings.cluster_url:
        yield Alone(node)
        return
    extras.require("cluster")
    if settings.store_url.startswith("sqlite"):
        raise InvalidConfig(
            "a cluster needs PostgreSQL, and this process keeps its facts in SQLite",
            hint="set DRAGOMAN_DATABASE_URL=postgresql://…, or leave DRAGOMAN_CLUSTER_URL away",
        )
    from dragoman.cluster.nats import NatsAddress, open_nats

    address = NatsAddress(
        servers=settings.cluster_url,
        prefix=settings.cluster_prefix,
        credentials=settings.cluster_credentials or "",
        authorities=settings.cluster_ca or "",
        certificate=settings.cluster_certificate or "",
    )
    redactor.register(address.secrets)

    def stated() -> dict[str, str]:
        """Of the keys the ids, the one that seals first: who replaces it has both for a while."""
        return {
            "master key": ",".join(vault.key_ids),
            "setting multi_user": str(settings.multi_user).lower(),
        }

    agreed = {"database": await _database(store)}
    async with open_nats(address, node, agreed, supervisor, vault, stated) as cluster:
        yield cluster


async def _database(store: Store) -> str:
    """What tells one database from another, whatever address it has: when its first row was written."""
    first = await store.people.find_workspace(LOCAL_WORKSPACE)
    assert first is not None, "made before the cluster is joined"
    return f"the one of {first.created_at.isoformat()}"
