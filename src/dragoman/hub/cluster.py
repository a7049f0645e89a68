"""The processes of the installation, for who runs it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.cluster import Node
from dragoman.hub.bound import BoundService
from dragoman.hub.user_rights import check_operator


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """`is_clustered`: the settings name a cluster. `is_connected`: nodes hear of each other now.

    `nodes` are those that this one knows of, the oldest first; `node` is the id of the one that was asked.
    """

    is_clustered: bool
    is_connected: bool
    node: str
    nodes: Sequence[Node]


class ClusterService(BoundService):
    """Only the operator looks."""

    __slots__ = ()

    async def status(self) -> ClusterStatus:
        """Which processes there are, as this one knows it."""
        check_operator(self._caller)
        cluster = self._runtime.cluster
        return ClusterStatus(
            is_clustered=bool(self._runtime.settings.cluster_url),
            is_connected=cluster.is_connected,
            node=cluster.node.id,
            nodes=await cluster.nodes(),
        )
