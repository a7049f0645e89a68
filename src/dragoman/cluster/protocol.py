"""What Dragoman asks of a cluster. Small enough to read at once."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, get_args

from dragoman.cluster.places import Places
from dragoman.cluster.streams import Streams
from dragoman.cluster.work import Work

Topic = Literal["changes", "thread", "answered", "cancelled", "slots"]
"""What a message is about: the feed of changes; a new root run of a thread; an approval or a question that
somebody answered; a run that somebody wants cancelled; slots of a limit that a node wants, or was given."""

TOPICS: tuple[Topic, ...] = get_args(Topic)
Heard = Callable[[str], None]
Role = Literal["doors", "work", "hold"]
"""What a process does for the installation: answers HTTP, executes runs, holds connections with state."""

ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One process of the installation. `id` is its own: a process that starts again is another node.

    `is_draining`: it stops soon, and gives away what it has.
    """

    id: str
    host: str
    pid: int
    version: str
    started_at: datetime
    roles: tuple[Role, ...] = ROLES
    is_draining: bool = False


class Cluster(Protocol):
    """The processes of one installation, as one of them sees them."""

    @property
    def node(self) -> Node:
        """This process."""
        ...

    @property
    def places(self) -> Places | None:
        """Which node holds which connection; None for one process, which holds all."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether the others hear of it now. While they do not, each looks into the store."""
        ...

    @property
    def work(self) -> Work:
        """Runs that wait for a node."""
        ...

    def tell(self, topic: Topic, key: str = "") -> None:
        """Says to every node, this one too, that there is something new about `key`. Never waits."""
        ...

    def listen(self, topic: Topic, heard: Heard) -> AbstractContextManager[None]:
        """`heard` is called with the key, in the event loop, while the block runs; it must not raise.

        The key is "" when messages may have been lost: then all of the topic may be new.
        """
        ...

    @property
    def streams(self) -> Streams:
        """What one node pushes to those that follow."""
        ...

    async def nodes(self) -> Sequence[Node]:
        """Those that live, this one too, the oldest first."""
        ...

    def may_live(self, node: str) -> bool:
        """False only where this process would have heard of the node if it lived."""
        ...
