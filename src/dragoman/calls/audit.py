"""Who did what to which: written in batches for calls, at once for what changes the installation.

Calls are noted in memory and written about once a second: after `kill -9` at most the last second is
lost. A store that fails or lags delays no call; what finds no room meanwhile is counted, and the trail
itself says so once it can be written again. Never holds arguments or results: only the hash.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from dragoman.calls.batch_flusher import BatchFlusher, kept
from dragoman.calls.records import FinishedCall
from dragoman.errors import DragomanError
from dragoman.scope import Caller
from dragoman.store.protocols import AuditStore
from dragoman.store.records import AuditEntry
from dragoman.telemetry.logs import get_logger
from dragoman.tool import arguments_hash

_BATCH = 500  # one transaction; the store itself lets the event loop go between parts of it
_MOST_WAITING = 20_000
_Noted = tuple[FinishedCall, str | None]


class Auditor:
    """Made by `open_auditor`, which also ends it."""

    def __init__(self, rows: AuditStore) -> None:
        self._rows = rows
        self._waiting: deque[_Noted] = deque()
        self._lost: Counter[str] = Counter()
        self._dropped = 0
        self.rhythm = BatchFlusher(self.flush, lambda: bool(self._waiting or self._lost))
        self._writing = asyncio.Lock()

    @property
    def dropped(self) -> int:
        """Entries of calls lost since the start."""
        return self._dropped

    def called(self, finished: FinishedCall, arguments: Mapping[str, Any] | None) -> None:
        """Notes a finished call, with the hash of its arguments; written within about a second."""
        waiting = self._waiting
        if len(waiting) >= _MOST_WAITING:
            self._lose(finished)
            return
        # Hashed now: kept until they are written, arguments could change, and be many and large.
        waiting.append((finished, None if arguments is None else _hash(arguments)))
        self.rhythm.noted(len(waiting))

    async def done(
        self,
        caller: Caller,
        action: str,
        subject: str,
        outcome: str = "ok",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes what was done before it returns: `connector.added`, `user.removed`, `approval.answered`."""
        await self._rows.append(
            [
                AuditEntry(
                    time=datetime.now(UTC),
                    workspace=caller.workspace,
                    user=caller.user,
                    agent=caller.agent,
                    way=caller.way,
                    action=action,
                    subject=subject,
                    outcome=outcome,
                    details=details or {},
                )
            ]
        )

    async def flush(self) -> None:
        """Writes what there is now; what cannot be written stays for the next time."""
        async with self._writing:
            self.rhythm.begin()
            for _ in range(0, len(self._waiting), _BATCH):  # what comes meanwhile is the next batch
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                if not await self._write(batch):
                    return
            await self._write_lost()

    async def _write(self, batch: Sequence[_Noted]) -> bool:
        is_written = False
        try:
            is_written = await self._append(batch)
        finally:
            if not is_written:
                self._put_back(batch)
        return is_written

    async def _append(self, batch: Sequence[_Noted]) -> bool:
        try:
            await self._rows.append([_entry(*noted) for noted in batch])
        except DragomanError as error:
            if error.retryable:
                get_logger().warning("audit.delayed", cause=error.message, waiting=len(self._waiting))
                return False
            await self._append_singly(batch)
        except Exception:  # noqa: BLE001
            # boundary: whatever one entry or the store does, calls go on
            await self._append_singly(batch)
        return True

    async def _append_singly(self, batch: Sequence[_Noted]) -> None:
        """One entry that the store refuses must not take the others of its batch along."""
        for noted in batch:
            try:
                await self._rows.append([_entry(*noted)])
            except Exception:  # noqa: BLE001
                # boundary: the entry is lost, and the trail will say so
                self._lose(noted[0])
                get_logger().warning("audit.lost", call=noted[0].id, exc_info=True)

    async def _write_lost(self) -> None:
        for workspace, count in list(self._lost.items()):
            try:
                await self._rows.append([_lost(workspace, count)])
            except Exception:  # noqa: BLE001
                # boundary: it stays counted, and is told the next time
                get_logger().warning("audit.delayed", lost=count, exc_info=True)
                return
            self._lost[workspace] -= count
            if not self._lost[workspace]:
                del self._lost[workspace]

    def _put_back(self, batch: Sequence[_Noted]) -> None:
        room = _MOST_WAITING - len(self._waiting)
        self._waiting.extendleft(reversed(batch[:room]))
        for finished, _ in batch[room:]:
            self._lose(finished)

    def _lose(self, finished: FinishedCall) -> None:
        self._dropped += 1
        self._lost[finished.caller.workspace] += 1


@asynccontextmanager
async def open_auditor(rows: AuditStore) -> AsyncGenerator[Auditor]:
    """Writes while the block runs, and writes the rest within a bound at its end."""
    auditor = Auditor(rows)
    async with kept(auditor.rhythm):
        yield auditor


def _hash(arguments: Mapping[str, Any]) -> str | None:
    try:
        return arguments_hash(arguments)
    except (TypeError, ValueError, RecursionError):  # no JSON, so nothing that was sent
        return None


def _entry(finished: FinishedCall, hash: str | None) -> AuditEntry:
    caller, connector = finished.caller, finished.connector
    return AuditEntry(
        time=datetime.fromtimestamp(finished.started_at + finished.duration_ms / 1000, UTC),
        workspace=caller.workspace,
        user=caller.user,
        agent=caller.agent,
        way=caller.way,
        action="call",
        subject=finished.tool,
        outcome="ok" if finished.ok else finished.code or "error",
        arguments_hash=hash,
        details={
            "call": finished.id,
            "connector": connector.slug if connector else None,
            "version": finished.version,
            "thread": caller.thread,
            "duration_ms": round(finished.duration_ms, 3),
        },
    )


def _lost(workspace: str, count: int) -> AuditEntry:
    return AuditEntry(
        time=datetime.now(UTC),
        workspace=workspace,
        user="",
        agent=None,
        way="direct",
        action="audit.lost",
        subject="call",
        outcome="lost",
        details={"entries": count},
    )
