"""What tasks of this process wait for, by id: an answer that any process may write into the store."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from dragoman.background_tasks import Supervisor
from dragoman.cluster.protocol import Cluster, Topic
from dragoman.errors import DragomanError

_LOOK_EVERY = 0.8  # seconds until an answer is noticed that another process does not tell of
_LOOK_WHEN_TOLD = 5.0  # the same where processes tell each other


class Awaited:
    """`settled` says which of these ids wait for nobody any more, as the store has them."""

    def __init__(
        self, cluster: Cluster, topic: Topic, settled: Callable[[Sequence[str]], Awaitable[Iterable[str]]]
    ) -> None:
        self._cluster = cluster
        self._topic: Topic = topic
        self._settled = settled
        # Who waits holds the event; with the last of them it is gone.
        self._events: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._is_awaited = asyncio.Event()
        self._is_due = asyncio.Event()

    @asynccontextmanager
    async def opened(self, supervisor: Supervisor) -> AsyncGenerator[None]:
        """While the block runs, what other processes write is noticed: told, or looked for."""
        with self._cluster.listen(self._topic, self._heard):
            async with supervisor.keeping(self._look, "look for answers"):
                yield

    def event(self, key: str) -> asyncio.Event:
        """Set once it is settled. To be had before the store is asked: nothing is missed between."""
        self._is_awaited.set()
        return self._events.setdefault(key, asyncio.Event())

    async def wait(self, event: asyncio.Event, longest: float) -> bool:
        """Whether it is settled within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest):
                await event.wait()
        return event.is_set()

    def tell(self, key: str) -> None:
        """It is written: whoever waits for it, in any process, goes on."""
        self._cluster.tell(self._topic, key)

    def _heard(self, key: str) -> None:
        """Somebody told it; "" when something may have been missed."""
        if not key:
            self._is_due.set()
        elif event := self._events.get(key):
            event.set()

    async def _look(self) -> None:
        """One look serves all who wait here; nobody looks where nobody waits."""
        while True:
            await self._is_awaited.wait()
            every = _LOOK_WHEN_TOLD if self._cluster.is_connected else _LOOK_EVERY
            with suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await self._is_due.wait()
            self._is_due.clear()
            if not self._events:
                self._is_awaited.clear()
                continue
            with suppress(DragomanError):  # the store is away: the next look will tell
                for key in await self._settled([*self._events]):
                    self._heard(key)
