"""One reading for all who ask for the same at the same time. Keeps nothing once it is read."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


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
