"""Resources that somebody is subscribed to on one connection, across all its sessions.

Subscribers are counted; the owner of the connection subscribes and unsubscribes at the server.
"""

import asyncio
from collections import Counter


class ResourceSubscriptions:
    def __init__(self) -> None:
        self._wanted: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()

    @property
    def uris(self) -> frozenset[str]:
        return frozenset(self._wanted)

    def add(self, uri: str) -> None:
        """Every subscriber that adds also removes."""
        self._wanted[uri] += 1
        if self._wanted[uri] == 1:
            self._note_change()

    def remove(self, uri: str) -> None:
        self._wanted[uri] -= 1
        if self._wanted[uri] <= 0:
            del self._wanted[uri]
            self._note_change()

    async def settled(self) -> None:
        """Until the server of an open session has been told of all there is now."""
        await self._settled.wait()

    # For the owner

    def settle(self, told: frozenset[str]) -> None:
        if told == self.uris:
            self._settled.set()

    def unsettle(self) -> None:
        """The session that was told is over."""
        self._settled.clear()

    def take(self) -> frozenset[str]:
        """What is wanted now; `changed` waits for the next change after it."""
        self._changed.clear()
        return self.uris

    async def changed(self) -> None:
        await self._changed.wait()

    def _note_change(self) -> None:
        self._settled.clear()
        self._changed.set()
