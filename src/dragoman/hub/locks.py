"""Whoever changes a thing waits for who changes it already."""

import asyncio
from weakref import WeakValueDictionary


class Locks:
    """A lock for each thing that is being changed, by kind and id; gone when nobody holds it any more."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    def of(self, *thing: str) -> asyncio.Lock:
        return self._locks.setdefault(thing, asyncio.Lock())
