"""One process: what it tells is heard by itself, at once."""

from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from dragoman.cluster.protocol import Heard, Node, Topic
from dragoman.cluster.streams import NoStreams
from dragoman.cluster.work import SoughtWork


class Listeners:
    """Who listens in this process, by topic."""

    def __init__(self) -> None:
        self._heard: defaultdict[Topic, list[Heard]] = defaultdict(list)

    def tell(self, topic: Topic, key: str = "") -> None:
        for heard in [*self._heard[topic]]:
            heard(key)

    @contextmanager
    def listen(self, topic: Topic, heard: Heard) -> Generator[None]:
        self._heard[topic].append(heard)
        try:
            yield
        finally:
            self._heard[topic].remove(heard)


class Alone:
    """Fills `Cluster` for one process."""

    is_connected = False
    places = None

    def __init__(self, node: Node) -> None:
        self.node = node
        self.streams = NoStreams()
        self.work = SoughtWork()
        self._listeners = Listeners()
        self.tell = self._listeners.tell
        self.listen = self._listeners.listen

    async def nodes(self) -> Sequence[Node]:
        return [self.node]

    def may_live(self, node: str) -> bool:
        return True
