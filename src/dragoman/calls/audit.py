"""Who did what to which: written in batches for calls, at once for what changes the installation.

Calls are noted in memory and written about once a second: after `kill -9` at most the last second is
lost. A store that fails or lags delays no call; what finds no room meanwhile is counted, and the trail
itself says so once it can be written again. Never holds arguments or results: only the hash.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from dragoman.background_tasks import Supervisor
from dragoman.calls.batch_flusher import BatchFlusher
from dragoman.calls.records import FinishedCall
from dragoman.scope import Caller
from dragoman.store.protocols import AuditStore
from dragoman.store.records import AuditEntry
from dragoman.telemetry.logs import get_logger
from dragoman.tool import arguments_hash

_Noted = tuple[FinishedCall, str | None]


class Auditor(BatchFlusher[_Noted]):
    """Made by `open_auditor`, which also ends it."""

    def __init__(self, rows: AuditStore) -> None:
        super().__init__("audit")
        self._rows = rows
        self._lost: Counter[str] = Counter()

    def called(self, finished: FinishedCall, arguments: Mapping[str, Any] | None) -> None:
        """Notes a finished call, with the hash of its arguments; written within about a second."""
        # Hashed now: kept until they are written, arguments could change, and be many and large.
        self.add((finished, None if arguments is None else _hash(arguments)))

    async def done(
        self,
        caller: Caller,
        action: str,
        subject: str,
        outcome: str = "ok",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes what was done before it returns: `connector.added`, `user.removed`, `approval.answered`."""
        await self._rows.append([entry_of(caller, action, subject, outcome, details)])

    async def write(self, items: Sequence[_Noted]) -> None:
        await self._rows.append([_entry(*noted) for noted in items])

    def lose(self, item: _Noted) -> None:
        """Counted, and the trail will say so."""
        super().lose(item)
        self._lost[item[0].caller.workspace] += 1

    def call_of(self, item: _Noted) -> str:
        return item[0].id

    @property
    def has_rest(self) -> bool:
        return bool(self._lost)

    async def write_rest(self) -> None:
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


@asynccontextmanager
async def open_auditor(rows: AuditStore, supervisor: Supervisor) -> AsyncGenerator[Auditor]:
    """Writes while the block runs, and writes the rest within a limit at its end."""
    auditor = Auditor(rows)
    async with auditor.flushing(supervisor):
        yield auditor


def entry_of(
    caller: Caller,
    action: str,
    subject: str,
    outcome: str = "ok",
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """What was done just now, for who writes it together with what it is about."""
    return AuditEntry(
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


def _hash(arguments: Mapping[str, Any]) -> str | None:
    try:
        return arguments_hash(arguments)
    except (TypeError, ValueError, RecursionError):  # no JSON, so nothing that was sent
        return None


def _entry(finished: FinishedCall, hash: str | None) -> AuditEntry:
    caller, connector = finished.caller, finished.connector
    return AuditEntry(
        time=datetime.fromtimestamp(
            finished.started_at + (finished.duration_ms + finished.waited_ms) / 1000, UTC
        ),
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
            **({"hooks": list(finished.hooks)} if finished.hooks else {}),
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
