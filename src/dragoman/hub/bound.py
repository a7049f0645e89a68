"""What every service of the hub is: the runtime, seen by one caller."""

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dragoman.people import Workspace
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

    async def _find_workspace(self, named: str | None) -> Workspace | None:
        """The one that is meant, by id or name: the caller's own, or for the operator any."""
        rows, caller = self._runtime.store.people, self._caller
        own = await rows.find_workspace(caller.workspace) or Workspace(
            id=caller.workspace, name=caller.workspace
        )
        if named is None or named == own.id:
            return own
        reached = await rows.workspaces() if caller.role == "operator" else [own]
        by_id = {one.id: one for one in reached}
        return by_id.get(named) or next((one for one in reached if one.name == named), None)


class Locks:
    """A lock for each thing that is being changed, by kind and id; gone when nobody holds it any more."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    def of(self, *thing: str) -> asyncio.Lock:
        return self._locks.setdefault(thing, asyncio.Lock())
