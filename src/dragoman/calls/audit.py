"""Who did what to which: written in batches for calls, at once for what changes the installation."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from dragoman.calls.records import Finished
from dragoman.scope import Caller
from dragoman.store.protocols import AuditRows
from dragoman.store.records import AuditEntry


class Auditor:
    """Made by `open_auditor`, which also ends it."""

    def __init__(self, rows: AuditRows) -> None:
        self._rows = rows

    def called(self, finished: Finished, arguments: Mapping[str, Any] | None) -> None:
        """Notes a finished call, with the hash of its arguments; written within about a second."""

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
        """Writes what there is now."""


@asynccontextmanager
async def open_auditor(rows: AuditRows) -> AsyncGenerator[Auditor]:
    async with asyncio.TaskGroup():
        yield Auditor(rows)
