"""What was read from the store, remembered until it changes or for a while. Knows nothing of what is read.

Many who ask at once share one reading, and nothing that was read before a change is given to who asks after
it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from math import inf
from time import monotonic
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Moment = tuple[int, float]
_MOST = 10_000


class SingleFlight(Generic[Key, Value]):
    def __init__(self) -> None:
        self._under_way: dict[Key, asyncio.Future[Value]] = {}

    async def share(self, key: Key, read: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Who goes away takes nothing from the others: the reading is finished once begun."""
        reading = self._under_way.get(key)
        if reading is None:
            reading = self._under_way[key] = asyncio.ensure_future(read())
            reading.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(reading)

    def forget(self) -> None:
        """Something changed: who asks from now on reads anew."""
        self._under_way.clear()

    def _end(self, key: Key, reading: "asyncio.Future[Value]") -> None:
        if self._under_way.get(key) is reading:
            del self._under_way[key]
        if not reading.cancelled():
            reading.exception()  # seen, even when everybody who asked went away


class Remembered(Generic[Key, Value]):
    """`read` asks the store for what is not known, or was read more than `fresh` seconds ago."""

    def __init__(self, read: Callable[[Key], Coroutine[Any, Any, Value]], fresh: float = inf) -> None:
        self._read = read
        self._fresh = fresh
        self._known: dict[Key, tuple[float, Value]] = {}
        self._readings = SingleFlight[Key, Value]()
        self._changes = 0

    async def get(self, key: Key) -> Value:
        known = self._known.get(key)
        if known is not None and monotonic() - known[0] < self._fresh:
            return known[1]
        return await self._readings.share(key, lambda: self._read_anew(key))

    def moment(self) -> "Moment":
        """Taken before something is written, for `keep`."""
        return (self._changes, monotonic())

    def keep(self, key: Key, value: Value, since: "Moment") -> None:
        """What was written is known, as if it had been read at that moment."""
        changes, then = since
        if changes == self._changes:  # else it may be older than what was forgotten meanwhile
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = (then, value)

    def forget(self, key: Key) -> None:
        """It changed: the next question asks the store."""
        self._change()
        self._known.pop(key, None)

    def forget_all(self) -> None:
        self._change()
        self._known.clear()

    def _change(self) -> None:
        self._changes += 1
        self._readings.forget()

    async def _read_anew(self, key: Key) -> Value:
        moment = self.moment()
        value = await self._read(key)
        self.keep(key, value, moment)
        return value
