"""What is noted in memory and written in batches: once a second, sooner when there is plenty, and on closing.

A store that fails or lags costs items, which are counted, never whoever adds them. Knows nothing of what
an item is: who extends it says how items are written. `flushing` owns the task that writes.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

from dragoman.background_tasks import Supervisor
from dragoman.errors import DragomanError
from dragoman.telemetry.logs import get_logger

Item = TypeVar("Item")
_EVERY = 1.0
_BATCH = 500  # one transaction; the store itself lets the event loop go between parts of it
_MOST_WAITING = 20_000
_LAST_WORDS = 3.0  # seconds that closing may take


class BatchFlusher(ABC, Generic[Item]):
    """`name` is the first word of what the log says."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: deque[Item] = deque()
        self._dropped = 0
        self._something = asyncio.Event()
        self._plenty = asyncio.Event()
        self._closing = asyncio.Event()
        self._writing = asyncio.Lock()

    @property
    def dropped(self) -> int:
        """Items lost since the start."""
        return self._dropped

    def add(self, item: Item) -> None:
        """Written within about a second. Where there is no room it is lost, and counted."""
        waiting = self._waiting
        if len(waiting) >= _MOST_WAITING:
            self.lose(item)
            return
        waiting.append(item)
        if len(waiting) == 1:
            self._something.set()
        elif len(waiting) == _BATCH:
            self._plenty.set()

    def wake(self) -> None:
        """There is something of the rest to write."""
        self._something.set()

    def lose(self, item: Item) -> None:
        self._dropped += 1

    @abstractmethod
    async def write(self, items: Sequence[Item]) -> None:
        """All of them, or it raises. A retryable error leaves them for the next time."""

    @abstractmethod
    def call_of(self, item: Item) -> str:
        """The id of the call that an item is about: the log names what was lost."""

    @property
    @abstractmethod
    def has_rest(self) -> bool:
        """Whether `write_rest` has something to write."""

    @abstractmethod
    async def write_rest(self) -> None:
        """What is no item and is written after them; never raises for the store's sake."""

    async def flush(self) -> None:
        """Writes what there is now; what cannot be written stays for the next time or is counted as lost."""
        async with self._writing:
            self._something.clear()
            self._plenty.clear()
            for _ in range(0, len(self._waiting), _BATCH):  # what comes meanwhile is the next batch
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                if not await self._write_or_put_back(batch):
                    return
            await self.write_rest()

    async def _write_or_put_back(self, batch: Sequence[Item]) -> bool:
        is_written = False
        try:
            is_written = await self._write(batch)
        finally:  # also when it is cancelled
            if not is_written:
                room = _MOST_WAITING - len(self._waiting)
                self._waiting.extendleft(reversed(batch[:room]))
                for item in batch[room:]:
                    self.lose(item)
        return is_written

    async def _write(self, batch: Sequence[Item]) -> bool:
        try:
            await self.write(batch)
        except DragomanError as error:
            if error.retryable:
                get_logger().warning(f"{self._name}.delayed", cause=error.message, waiting=len(batch))
                return False
            await self._write_singly(batch)
        except Exception:  # noqa: BLE001
            # boundary: whatever one item or the store does, calls go on
            await self._write_singly(batch)
        return True

    async def _write_singly(self, batch: Sequence[Item]) -> None:
        """One item that the store refuses must not take the others of its batch along."""
        for item in batch:
            try:
                await self.write([item])
            except Exception:  # noqa: BLE001
                # boundary: the item is lost, and counted
                self.lose(item)
                get_logger().warning(f"{self._name}.lost", call=self.call_of(item), exc_info=True)

    async def _keep(self) -> None:
        """Until it closes; the last batch is written then."""
        while not self._closing.is_set():
            await self._something.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY):
                    await self._plenty.wait()
            await self.flush()
            if self._waiting or self.has_rest:
                # The store failed, or calls ended while it wrote: they wait no longer than others.
                self._something.set()
        await self.flush()

    def _close(self) -> None:
        self._closing.set()
        self._something.set()
        self._plenty.set()

    @asynccontextmanager
    async def flushing(self, supervisor: Supervisor) -> AsyncGenerator[None]:
        """Writes while the block runs, and writes the rest within a limit at its end."""
        async with supervisor.keeping(self._keep, f"write {self._name}") as writer:
            try:
                yield
            finally:
                self._close()
                await asyncio.wait([writer], timeout=_LAST_WORDS)
