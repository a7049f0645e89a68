"""The processes of the installation, for who runs it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.cluster import Node
from dragoman.errors import DragomanError
from dragoman.hub.bound import BoundService
from dragoman.hub.user_rights import check_operator


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """`is_clustered`: the settings name a cluster. `is_connected`: nodes hear of each other now.

    `nodes` are those that this one knows of, the oldest first; `node` is the id of the one that was asked.
    `runs_waiting` could begin and wait for a process, the first of them for `longest_wait` seconds; None
    while the database does not answer. `runs_at_work` are executed by the process that was asked.
    """

    is_clustered: bool
    is_connected: bool
    node: str
    nodes: Sequence[Node]
    runs_waiting: int | None
    longest_wait: float | None
    runs_at_work: int


class ClusterService(BoundService):
    """Only the operator looks."""

    __slots__ = ()

    async def status(self) -> ClusterStatus:
        """Which processes there are, as this one knows it."""
        check_operator(self._caller)
        cluster, dispatch = self._runtime.cluster, self._runtime.engine.dispatch
        waiting, longest = await self._backlog()
        return ClusterStatus(
            is_clustered=bool(self._runtime.settings.cluster_url),
            is_connected=cluster.is_connected,
            node=cluster.node.id,
            nodes=await cluster.nodes(),
            runs_waiting=waiting,
            longest_wait=longest,
            runs_at_work=0 if dispatch is None else dispatch.at_work,
        )

    async def _backlog(self) -> tuple[int | None, float | None]:
        store = self._runtime.store
        try:
            await store.clock.read()
            now = store.clock.now()
            waiting, since = await store.runs.backlog(now)
        except DragomanError:
            return None, None
        return waiting, 0.0 if since is None else max(0.0, (now - since).total_seconds())
