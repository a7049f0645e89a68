"""The processes of the installation, for who runs it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.cluster import Node
from dragoman.cluster.places import Place, PlaceCounts
from dragoman.connections.placed import PlacedConnections
from dragoman.connector import Connector
from dragoman.errors import DragomanError, NotFound
from dragoman.hub.bound import BoundService
from dragoman.hub.user_rights import check_operator
from dragoman.runs.workers import Worker
from dragoman.scope import holder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """`is_clustered`: the settings name a cluster. `is_connected`: nodes hear of each other now.

    `nodes` are those that this one knows of, the oldest first; `node` is the id of the one that was asked.
    `runs_waiting` could begin and wait for a process, the first of them for `longest_wait` seconds; None
    while the database does not answer. `runs_at_work` are executed by the process that was asked; `runs` has
    by node how many it executes, or holds until a person has answered. `places` counts those of the process
    that was asked.
    """

    is_clustered: bool
    is_connected: bool
    node: str
    nodes: Sequence[Node]
    runs_waiting: int | None
    longest_wait: float | None
    runs_at_work: int
    runs: Mapping[str, int]
    places: PlaceCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldConnection:
    """A connection with state, and the node that holds it. `user` is empty where all of a workspace share it.

    `is_pinned`: a person chose the node.
    """

    connector: str
    workspace: str
    user: str
    node: str
    is_pinned: bool


class ClusterService(BoundService):
    """Only the operator looks, and moves."""

    __slots__ = ()

    async def status(self) -> ClusterStatus:
        """Which processes there are, as this one knows it."""
        check_operator(self._caller)
        cluster, dispatch = self._runtime.cluster, self._runtime.engine.dispatch
        waiting, longest, runs = await self._work()
        return ClusterStatus(
            is_clustered=bool(self._runtime.settings.cluster_url),
            is_connected=cluster.is_connected,
            node=cluster.node.id,
            nodes=await cluster.nodes(),
            runs_waiting=waiting,
            longest_wait=longest,
            runs_at_work=0 if dispatch is None else dispatch.at_work,
            runs=runs,
            places=PlaceCounts() if cluster.places is None else cluster.places.counts,
        )

    async def _work(self) -> tuple[int | None, float | None, Mapping[str, int]]:
        """How many runs wait, how long the first of them does, and how many each node holds."""
        store = self._runtime.store
        try:
            await store.clock.read()
            now = store.clock.now()
            waiting, since = await store.runs.backlog(now)
            holders = await store.runs.holders()
        except DragomanError:
            return None, None, {}
        runs = Counter[str]()
        for text, held in holders.items():
            if (worker := Worker.find(text)) is not None:
                runs[worker.node or self._runtime.cluster.node.id] += held.runs
        return waiting, 0.0 if since is None else max(0.0, (now - since).total_seconds()), runs

    async def places(self) -> Sequence[HeldConnection]:
        """Which node holds which connection. One process holds all of its own, and has no places."""
        check_operator(self._caller)
        return [_shown(place, connector) for place, connector in await self._placed()]

    async def move(
        self, connector: str, *, user: str | None = None, to: str | None = None
    ) -> Sequence[HeldConnection]:
        """Has another node hold the connections of a connector, or those of one user of it.

        It is `to` which then keeps them, or whoever should. `Conflict` where one is in use for long.
        """
        check_operator(self._caller)
        servers = self._runtime.servers
        meant = [
            (place, found)
            for place, found in await self._placed()
            if connector in (found.id, found.slug) and user in (None, holder_of(place.identity)[1])
        ]
        if not meant or not isinstance(servers, PlacedConnections):
            raise NotFound(
                f"no node holds a connection of {connector[:80]!r}",
                hint="dragoman cluster status shows what is held",
            )
        for place, found in meant:
            await servers.move(place.key, found, to)
        moved = {place.key for place, _ in meant}
        return [_shown(place, found) for place, found in await self._placed() if place.key in moved]

    async def _placed(self) -> list[tuple[Place, Connector]]:
        places = self._runtime.cluster.places
        held: Sequence[Place] = () if places is None else await places.list()
        found = [(place, self._runtime.registry.find_by_id(place.connector)) for place in held]
        return sorted(
            ((place, connector) for place, connector in found if connector is not None),
            key=lambda one: (one[1].slug, one[0].identity),
        )


def _shown(place: Place, connector: Connector) -> HeldConnection:
    workspace, user = holder_of(place.identity)
    return HeldConnection(
        connector=connector.slug,
        workspace=workspace,
        user=user,
        node=place.node,
        is_pinned=place.is_pinned,
    )
