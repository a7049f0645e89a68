"""What every service of the hub is: the runtime, seen by one caller."""

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dragoman.scope import Caller

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime


class BoundService:
    """A service for one caller. It keeps nothing itself, so it costs nothing to make one.

    Whoever has one can only act for its caller; for somebody else another one is made, in so many words.
    """

    __slots__ = ("_caller", "_runtime")

    def __init__(self, runtime: "Runtime", caller: Caller) -> None:
        self._runtime = runtime
        self._caller = caller


class Locks:
    """A lock for each thing that is being changed, by kind and id; gone when nobody holds it any more."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    def of(self, *thing: str) -> asyncio.Lock:
        return self._locks.setdefault(thing, asyncio.Lock())
