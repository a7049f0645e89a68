"""Runs on their way to the disk: those that come while others are being written are written together."""

import asyncio
from collections.abc import Sequence

from dragoman.errors import DragomanError
from dragoman.store.protocols import RunStore
from dragoman.store.records import AcceptedRun, NewRun

_AT_ONCE = 50  # rows are made ready on the event loop: more between two awaits would be felt by calls


class RunAcceptance:
    """`tasks` belong to who made it."""

    def __init__(self, rows: RunStore, tasks: asyncio.TaskGroup) -> None:
        self._rows = rows
        self._tasks = tasks
        self._waiting: list[tuple[NewRun, asyncio.Future[AcceptedRun]]] = []
        self._is_writing = False

    async def accept(self, new: NewRun) -> AcceptedRun:
        """On disk when this returns. Who stops waiting for it may find it written."""
        told = asyncio.get_running_loop().create_future()
        self._waiting.append((new, told))
        if not self._is_writing:
            self._is_writing = True
            self._tasks.create_task(self._write(), name="accept runs")
        return await told

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                await self._write_together(batch)
        finally:
            self._is_writing = False
            for _, told in self._waiting:
                told.cancel()

    async def _write_together(self, batch: Sequence[tuple[NewRun, asyncio.Future[AcceptedRun]]]) -> None:
        try:
            written = await self._rows.accept([new for new, _ in batch])
        except asyncio.CancelledError:
            for _, told in batch:
                told.cancel()
            raise
        except Exception as error:  # noqa: BLE001
            # boundary: whatever it is, who waits for it is told
            if len(batch) == 1 or not isinstance(error, DragomanError):
                for _, told in batch:
                    if not told.done():
                        told.set_exception(error)
                return
            for one in batch:  # nobody pays for another's fault
                await self._write_together([one])
            return
        for (_, told), accepted in zip(batch, written, strict=True):
            if not told.done():
                told.set_result(accepted)
