"""Tasks that servers work on for calls which are entered again after a restart, such as those of runs.

A task is kept under the name of its call, and for nothing but that call: the same connector, tool, arguments
and caller. Who finds it follows it; a call that left and finds none is `uncertain`.
"""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from dragoman.errors import Uncertain
from dragoman.scope import Caller
from dragoman.tool import CallObserver, Tool, arguments_hash

LASTS = 24 * 3600.0


class TaskRecords(Protocol):
    """Where they are kept, sealed. The hub fills it."""

    async def find(self, name: str) -> bytes | None: ...

    async def keep(self, name: str, value: bytes, caller: Caller, lasts: float) -> None: ...

    async def forget(self, name: str) -> None: ...


class NoTaskRecords:
    """For a road of its own, where nothing outlives the process."""

    async def find(self, name: str) -> bytes | None:
        return None

    async def keep(self, name: str, value: bytes, caller: Caller, lasts: float) -> None:
        return None

    async def forget(self, name: str) -> None:
        return None


class CallTask:
    """Of one call. `found` is the task that the server works on since before a restart."""

    def __init__(
        self, records: TaskRecords, observer: CallObserver, caller: Caller, facts: list[str]
    ) -> None:
        self._records = records
        self._observer = observer
        self._caller = caller
        self._facts = facts
        self.found: str | None = None
        self._is_kept = False

    @property
    def is_over(self) -> bool:
        return self._observer.is_over

    async def find(self) -> None:
        """Raises `Uncertain` where the call has left and nobody knows what became of it."""
        found = await self._records.find(self._observer.name)
        task, *facts = json.loads(found) if found else [None]
        if task is None or facts != self._facts:
            raise Uncertain(
                "whether this call was executed is not known: it had left when the process ended",
                hint="look at the server before you repeat it",
            )
        self.found, self._is_kept = task, True

    async def keep(self, task: str) -> None:
        self._is_kept = True
        value = json.dumps([task, *self._facts]).encode()
        await self._records.keep(self._observer.name, value, self._caller, LASTS)

    async def ended(self) -> None:
        """The call has its outcome, whatever that is."""
        if self._is_kept:
            await self._records.forget(self._observer.name)


class CallTasks:
    def __init__(self, records: TaskRecords) -> None:
        self._records = records

    async def of(
        self, observer: CallObserver | None, tool: Tool, arguments: Mapping[str, Any], caller: Caller
    ) -> CallTask | None:
        """None for a call that nobody would enter again."""
        if observer is None or not observer.name:
            return None
        facts = [
            tool.connector_id,
            tool.name,
            tool.fingerprint,
            arguments_hash(arguments),
            caller.fingerprint,
        ]
        task = CallTask(self._records, observer, caller, facts)
        if observer.has_departed:
            await task.find()
        return task
