"""The tools that are loaded in threads: kept in the store, and in memory for who cannot wait.

The store is the truth: what changes is read from it first and written to it before it is believed here.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self
from weakref import WeakValueDictionary

from dragoman.store.protocols import ThreadStore
from dragoman.store.records import LoadedTool

ThreadKey = tuple[str, str, str]
MOST_LOADED = 200
_MOST_THREADS = 10_000
_MOST_AT_START = 20_000


@dataclass(frozen=True, slots=True)
class LoadedChange:
    """What a thread had not loaded before, and what had to go for it: the ones loaded longest ago."""

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class LoadedTools:
    """By workspace, user and thread. The thread that was used longest ago leaves the memory first."""

    def __init__(self, rows: ThreadStore) -> None:
        self._rows = rows
        self._threads: OrderedDict[ThreadKey, tuple[str, ...]] = OrderedDict()
        self._changing: WeakValueDictionary[ThreadKey, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    async def load(cls, rows: ThreadStore) -> Self:
        """With what the threads used last had loaded before the restart."""
        loaded = cls(rows)
        await loaded.reload()
        return loaded

    async def reload(self) -> None:
        """What the threads used last have loaded by now, and nothing else."""
        threads: dict[ThreadKey, list[str]] = {}
        for row in await self._rows.last_loaded(_MOST_AT_START):
            threads.setdefault((row.workspace, row.user, row.thread), []).append(row.tool)
        self._threads.clear()
        for key, names in threads.items():
            self._keep(key, names)

    def of(self, key: ThreadKey) -> tuple[str, ...]:
        """In the order in which they were loaded, as far as this process knows."""
        return self._threads.get(key, ())

    async def read(self, key: ThreadKey) -> tuple[str, ...]:
        """The same, with what other processes and older days have loaded."""
        async with self._alone(key):
            return await self._read(key)

    async def add(self, key: ThreadKey, names: Iterable[str]) -> LoadedChange:
        async with self._alone(key):
            before = await self._read(key)
            wanted = tuple(dict.fromkeys(names))
            held = (*(name for name in before if name not in wanted), *wanted)
            kept = held[max(0, len(held) - MOST_LOADED) :]
            gone = tuple(name for name in before if name not in kept)
            put = [name for name in wanted if name in kept]
            await self._rows.change_loaded(_made(key, put), _made(key, gone))
            self._keep(key, kept)
            return LoadedChange(tuple(name for name in put if name not in before), gone)

    async def remove(self, key: ThreadKey, names: Iterable[str]) -> tuple[str, ...]:
        """Those that were loaded."""
        async with self._alone(key):
            before = await self._read(key)
            gone = tuple(name for name in dict.fromkeys(names) if name in before)
            if gone:
                await self._rows.change_loaded([], _made(key, gone))
                self._keep(key, [name for name in before if name not in gone])
            return gone

    def forget(self, key: ThreadKey) -> None:
        """For a thread that was removed: its rows went with it."""
        self._threads.pop(key, None)

    async def tidy(self, before: datetime) -> None:
        await self._rows.forget_loaded(before)

    def _alone(self, key: ThreadKey) -> AbstractAsyncContextManager[None]:
        return self._changing.setdefault(key, asyncio.Lock())

    async def _read(self, key: ThreadKey) -> tuple[str, ...]:
        if not key[2].isprintable():  # not every database takes it, so none has it
            return ()
        names = tuple(row.tool for row in await self._rows.loaded(*key))
        self._keep(key, names)
        return names

    def _keep(self, key: ThreadKey, names: Sequence[str]) -> None:
        if not names:
            self.forget(key)
            return
        self._threads[key] = tuple(names)
        self._threads.move_to_end(key)
        while len(self._threads) > _MOST_THREADS:
            self._threads.popitem(last=False)


def _made(key: ThreadKey, names: Sequence[str]) -> list[LoadedTool]:
    """Loaded now, each a moment after the one before: so their order is kept."""
    workspace, user, thread = key
    now = datetime.now(UTC)
    return [
        LoadedTool(
            workspace=workspace,
            user=user,
            thread=thread,
            tool=name,
            loaded_at=now + timedelta(microseconds=number),
        )
        for number, name in enumerate(names)
    ]
