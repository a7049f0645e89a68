"""What tasks of this process wait for, by id: an answer that any process may write into the store."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from weakref import WeakValueDictionary

from dragoman.cluster.protocol import Cluster, Topic

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
        self._next_look = 0.0

    def event(self, key: str) -> asyncio.Event:
        """Set once it is settled. To be had before the store is asked: nothing is missed between."""
        return self._events.setdefault(key, asyncio.Event())

    async def wait(self, event: asyncio.Event, longest: float) -> bool:
        """Whether it is settled, after a while; the caller asks again until it is, or gives up."""
        every = _LOOK_WHEN_TOLD if self._cluster.is_connected else _LOOK_EVERY
        with suppress(TimeoutError):
            async with asyncio.timeout(min(longest, every)):
                await event.wait()
        now = asyncio.get_running_loop().time()
        if not event.is_set() and now >= self._next_look:
            # One look serves all who wait here.
            self._next_look = now + every
            for key in await self._settled([*self._events]):
                self.heard(key)
        return event.is_set()

    def tell(self, key: str) -> None:
        """It is written: whoever waits for it, in any process, goes on."""
        self._cluster.tell(self._topic, key)

    def heard(self, key: str) -> None:
        """Somebody told it; "" when something may have been missed."""
        if not key:
            self._next_look = 0.0
        elif event := self._events.get(key):
            event.set()
