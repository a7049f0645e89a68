"""Which node holds the connection of (connector, identity), and until when a node may hold any.

A node holds by a lease that it renews. It stops by its own clock before anybody else may take what it held:
who takes over has seen the lease unchanged for longer than its holder believes in it, and ends it by
compare-and-set. Knows neither connections nor NATS.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

RENEW_EVERY = 0.4  # seconds between two renewals of a lease
HELD_FOR = 1.4  # seconds after the last renewal was sent: then its holder stops and closes what it held
OVER_AFTER = 1.9  # seconds that others see it unchanged before they end it: what is held is closed by then

PlaceKey = tuple[str, str]
"""Id of the connector, and for whom it is connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Who holds a connection. It counts while `node` has the `lease` that it had then.

    `is_pinned`: a person chose the node; it is not moved to balance.
    """

    connector: str
    identity: str
    node: str
    lease: str
    revision: int = 0
    is_pinned: bool = False

    @property
    def key(self) -> PlaceKey:
        return self.connector, self.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceCounts:
    """Places that this node has, and since it started: those that it gave to another node, by hand or to
    balance; those that it lost because its lease was over; those that it took from a node that lost them.
    """

    held: int = 0
    moved: int = 0
    lost: int = 0
    taken_over: int = 0


class NotHeld(Exception):
    """This node does not hold the place, or not any more. What was to be done there was not done."""


def boot_clock() -> float:
    """Seconds that no change of the wall clock and no sleep of the machine hides."""
    return time.clock_gettime(_CLOCK)


_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class NodeLease:
    """The right of this node to hold, by its own clock. A lease that was lost never comes back."""

    __slots__ = ("_clock", "_tell", "_until", "id")

    def __init__(self, clock: Callable[[], float] = boot_clock) -> None:
        self._clock = clock
        self._until = 0.0
        self._tell: Callable[[float], None] = lambda until: None
        self.id = ""

    @property
    def is_held(self) -> bool:
        return self._clock() < self._until

    @property
    def left(self) -> float:
        """Seconds."""
        return self._until - self._clock()

    def watch(self, tell: Callable[[float], None]) -> None:
        """`tell` is called with the end of it, on the clock of the machine, now and whenever that moves."""
        self._tell = tell
        tell(self._until)

    def begin(self, lease: str, sent_at: float) -> None:
        self.id = lease
        self._move(sent_at + HELD_FOR)

    def renew(self, sent_at: float) -> bool:
        """The renewal that was sent then is written. One that comes too late does not revive it."""
        if not self.is_held:
            return False
        self._move(max(self._until, sent_at + HELD_FOR))
        return True

    def end(self) -> None:
        self._move(0.0)

    def _move(self, until: float) -> None:
        self._until = until
        self._tell(until)

    def now(self) -> float:
        return self._clock()


def preferred(key: PlaceKey, nodes: Sequence[str]) -> list[str]:
    """Nodes in the order in which they should hold it: the same everywhere, and even over many keys."""
    word = "\0".join(key)
    return sorted(nodes, key=lambda node: (crc32(f"{word}\0{node}".encode()), node))


class NodeMessage(Protocol):
    """What another node said about one request."""

    kind: str
    node: str
    id: str
    body: Any

    async def reply(self, kind: str, body: Any = None) -> None: ...


class NodeRequest(Protocol):
    """One request to another node. It is told what comes of it until the block ends."""

    async def send(self, kind: str, body: Any = None) -> int:
        """Its number: the first is 1. Never waits for an answer; `ConnectionError` if it cannot be sent."""
        ...

    async def receive(self, longest: float) -> "NodeReply | None":
        """None when nothing came for so many seconds."""
        ...


@dataclass(frozen=True, slots=True)
class NodeReply:
    """`kind` is `nobody` where nobody listened to the message of that `number`."""

    kind: str
    body: Any = None
    number: int = 0


class Places(Protocol):
    """The places of one installation, as one node sees them."""

    lease: NodeLease

    @property
    def node(self) -> str:
        """The id of this one."""
        ...

    @property
    def counts(self) -> PlaceCounts: ...

    async def locate(self, key: PlaceKey, doubted: Place | None = None) -> Place:
        """Who holds it; where nobody does, a node is chosen.

        `doubted` is one whose node does not answer. It returns once that node has renewed its lease, or
        somebody else holds it. `ClusterUnavailable` where that cannot be found out.
        """
        ...

    async def suspect(self, place: Place) -> None:
        """Its node is silent: from now on it counts whether that renews its lease."""
        ...

    def holds(self, key: PlaceKey) -> bool:
        """Whether this node holds it now, by its own clock."""
        ...

    def is_pinned(self, key: PlaceKey) -> bool:
        """Whether a person chose that this node holds it."""
        ...

    async def may_hold(self, key: PlaceKey) -> bool:
        """The same; what another node placed here is looked up."""
        ...

    async def stop_taking(self) -> None:
        """This node drains: nothing more is placed here. What it holds it holds until it is let go."""
        ...

    async def let_go(self, key: PlaceKey, to: str | None = None, *, is_moved: bool = False) -> None:
        """What this node held is closed: the next who wants it finds it free, or at node `to`.

        `is_moved`: another node shall have it.
        """
        ...

    async def list(self) -> Sequence[Place]:
        """Every place that somebody holds."""
        ...

    async def living(self) -> Sequence[str]:
        """Ids of the nodes that may hold places."""
        ...

    async def present(self) -> Sequence[str]:
        """Ids of all nodes."""
        ...

    def ask(self, node: str) -> AbstractContextManager[NodeRequest]: ...

    def answering(self, take: Callable[[NodeMessage], None]) -> AbstractAsyncContextManager[None]:
        """`take` gets what other nodes ask of this one while the block runs, all that came until its end."""
        ...

    def say(self, kind: str, body: Any) -> None:
        """To every other node. Never waits; it may be lost."""
        ...

    def hearing(self, hear: Callable[[str, str, Any], None]) -> AbstractContextManager[None]:
        """`hear` gets the node, the kind and the body of what others say."""
        ...

    def on_lost(self, close: "Callable[[], Any]") -> None:
        """`close` is awaited when the lease is over, before the next one begins."""
        ...
