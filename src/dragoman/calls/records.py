"""What is remembered of calls: numbers per connector, and one record each. Never in the way of a call.

Everything is counted in memory and written in batches about once a second: after `kill -9` at most
the last second is lost. A store that fails or lags costs records, which are counted, never calls.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from dragoman.calls.batch_flusher import BatchFlusher, kept
from dragoman.connector import Connector
from dragoman.errors import DragomanError
from dragoman.scope import Caller
from dragoman.store.protocols import Store
from dragoman.store.records import CallRecord
from dragoman.telemetry.logs import get_logger
from dragoman.telemetry.metrics import ConnectorCounters, ConnectorMetrics

_BATCH = 500  # one transaction; the store itself lets the event loop go between parts of it
_MOST_WAITING = 20_000


@dataclass(slots=True)
class FinishedCall:
    """One finished call, cheap to note down. Neither arguments nor result: they may be large."""

    id: str
    caller: Caller
    tool: str
    connector: Connector | None
    was_sent: bool
    ok: bool
    code: str | None
    message: str | None
    duration_ms: float
    attempts: int
    started_at: float
    version: int | None = None


class Recorder:
    """Made by `open_recorder`, which also ends it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tallies: dict[str, ConnectorCounters] = {}
        self._changed: set[str] = set()
        self._waiting: deque[FinishedCall] = deque()
        self.rhythm = BatchFlusher(self.flush, lambda: bool(self._waiting or self._changed))
        self._writing = asyncio.Lock()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Records lost since the start."""
        return self._dropped

    def finished(self, finished: FinishedCall) -> None:
        if finished.connector is not None:
            tally = self._tally(finished.connector)
            if finished.was_sent:
                error = None if finished.ok else f"{finished.code}: {finished.message}"
                tally.finished(finished.ok, finished.duration_ms, finished.started_at, error)
            elif finished.ok:
                tally.cached += 1
            else:
                tally.rejected += 1
        waiting = self._waiting
        if len(waiting) >= _MOST_WAITING:
            self._dropped += 1
            return
        waiting.append(finished)
        self.rhythm.noted(len(waiting))

    def connected(self, connector: Connector, seconds: float, is_reconnect: bool) -> None:
        self._tally(connector).connected(seconds * 1000, is_reconnect)
        self.rhythm.wake()

    def reused(self, connector: Connector) -> None:
        self._tally(connector).reused += 1

    def metrics(self, connector: Connector) -> ConnectorMetrics:
        tally = self._tallies.get(connector.id) or ConnectorCounters(connector.workspace, connector.slug)
        return tally.view(connector.id)

    def list_metrics(self) -> list[ConnectorMetrics]:
        return [tally.view(connector_id) for connector_id, tally in sorted(self._tallies.items())]

    def forget(self, connector_id: str) -> None:
        """The connector is gone, and so are its numbers."""
        self._tallies.pop(connector_id, None)
        self._changed.discard(connector_id)

    async def flush(self) -> None:
        """Writes what there is now; what cannot be written stays for the next time or is counted as lost."""
        async with self._writing:
            self.rhythm.begin()
            for _ in range(0, len(self._waiting), _BATCH):  # what comes meanwhile is the next batch
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                if not await self._write(batch):
                    break
            await self._write_numbers()

    async def _write(self, batch: Sequence[FinishedCall]) -> bool:
        is_written = False
        try:
            is_written = await self._write_records([_record(finished) for finished in batch])
        finally:
            if not is_written:
                self._put_back(batch)
        return is_written

    async def load(self) -> None:
        for connector_id, numbers in (await self._store.connectors.metrics()).items():
            self._tallies[connector_id] = ConnectorCounters.restored(numbers)

    async def _write_records(self, records: Sequence[CallRecord]) -> bool:
        try:
            await self._store.calls.add(records)
        except DragomanError as error:
            if error.retryable:
                get_logger().warning("records.delayed", cause=error.message, waiting=len(records))
                return False
            return await self._write_singly(records)
        except Exception:  # noqa: BLE001
            # boundary: whatever one record or the store does, calls go on
            return await self._write_singly(records)
        return True

    async def _write_singly(self, records: Sequence[CallRecord]) -> bool:
        """One record that the store refuses must not take the others of its batch along."""
        for record in records:
            try:
                await self._store.calls.add([record])
            except Exception:  # noqa: BLE001
                # boundary: the record is lost, and counted
                self._dropped += 1
                get_logger().warning("records.lost", call=record.id, exc_info=True)
        return True

    async def _write_numbers(self) -> None:
        changed = {key: self._tallies[key].numbers() for key in self._changed if key in self._tallies}
        self._changed.clear()
        if not changed:
            return
        try:
            await self._store.connectors.save_metrics(changed)
        except Exception:  # noqa: BLE001
            # boundary: the numbers are still in memory, and written with the next batch
            self._changed.update(key for key in changed if key in self._tallies)
            get_logger().warning("metrics.delayed", exc_info=True)

    def _put_back(self, batch: Sequence[FinishedCall]) -> None:
        room = _MOST_WAITING - len(self._waiting)
        self._waiting.extendleft(reversed(batch[:room]))
        self._dropped += max(len(batch) - room, 0)

    def _tally(self, connector: Connector) -> ConnectorCounters:
        tally = self._tallies.get(connector.id)
        if tally is None:
            tally = self._tallies[connector.id] = ConnectorCounters(connector.workspace, connector.slug)
        self._changed.add(connector.id)
        return tally


@asynccontextmanager
async def open_recorder(store: Store) -> AsyncGenerator[Recorder]:
    """Reads the old numbers, writes while the block runs, and writes the rest within a bound at its end."""
    recorder = Recorder(store)
    await recorder.load()
    async with kept(recorder.rhythm):
        yield recorder


def _record(finished: FinishedCall) -> CallRecord:
    caller, connector = finished.caller, finished.connector
    return CallRecord(
        id=finished.id,
        workspace=caller.workspace,
        user=caller.user,
        thread=caller.thread,
        agent=caller.agent,
        way=caller.way,
        tool=finished.tool,
        connector_id=connector.id if connector else None,
        slug=connector.slug if connector else None,
        ok=finished.ok,
        code=finished.code,
        message=finished.message,
        duration_ms=finished.duration_ms,
        attempts=finished.attempts,
        started_at=datetime.fromtimestamp(finished.started_at, UTC),
    )
