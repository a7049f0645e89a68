"""The journal: what runs did, written in groups. Several runs share a commit.

Whoever `write`s goes on when it is on disk; what is `note`d is there a moment later, in the same order.
Events are told to listeners only once they are kept. Knows no agent and no model.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from dragoman.errors import DragomanError, ShuttingDown
from dragoman.run import Message, Run, RunEvent, Step
from dragoman.store.run_protocols import Batch, RunRows
from dragoman.telemetry.logs import get_logger

Entry = Step | RunEvent | Run | Message

_SOON = 0.025  # seconds that what nobody waits for may lie in memory
_AGAIN = 0.5  # seconds until the store is asked again after a failure
_LAST_WORDS = 3.0
_MOST_NOTED = 50_000  # entries that may wait while the store is away


@dataclass(slots=True)
class _Noted:
    entry: Entry
    kept: "asyncio.Future[None] | None"


class Journal:
    def __init__(self, rows: RunRows, tell: Callable[[Sequence[RunEvent]], None]) -> None:
        self._rows = rows
        self._tell = tell
        self._noted: list[_Noted] = []
        self._something = asyncio.Event()
        self._urgent = asyncio.Event()
        self._closing = False

    def note(self, *entries: Entry) -> None:
        """Written within a moment. Text that follows text of the same run is joined to it."""
        for entry in entries:
            if not self._joined(entry):
                self._noted.append(_Noted(entry, None))
        if len(self._noted) > _MOST_NOTED:
            raise ShuttingDown("the journal cannot be written", hint="see whether the database answers")
        self._something.set()

    async def write(self, *entries: Entry) -> None:
        """Returns when it is on disk, with everything noted before. Raises what the store says."""
        if self._closing:
            raise ShuttingDown("the journal is closed", hint="the run goes on after the next start")
        kept = asyncio.get_running_loop().create_future()
        self._noted += [_Noted(entry, kept) for entry in entries]
        self._something.set()
        self._urgent.set()
        await kept

    def _joined(self, entry: Entry) -> bool:
        last = self._noted[-1] if self._noted else None
        if last is None or last.kept is not None or not isinstance(entry, RunEvent) or entry.kind != "text":
            return False
        before = last.entry
        if not isinstance(before, RunEvent) or (before.kind, before.run) != ("text", entry.run):
            return False
        if before.data["turn"] != entry.data["turn"]:
            return False
        delta = before.data["delta"] + entry.data["delta"]
        last.entry = replace(entry, data={**entry.data, "delta": delta})
        return True

    async def _keep(self) -> None:
        while not (self._closing and not self._noted):
            await self._something.wait()
            if not self._closing:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._urgent.wait(), _SOON)
            await self._flush()

    async def _flush(self) -> None:
        noted, self._noted = self._noted, []
        self._something.clear()
        self._urgent.clear()
        if not noted:
            return
        try:
            await self._rows.write(_batch([one.entry for one in noted]))
        except DragomanError as error:
            get_logger().warning("the journal could not be written", error=error.message)
            self._failed(noted, error)
            await asyncio.sleep(0 if self._closing else _AGAIN)
            return
        for one in noted:
            if one.kept is not None and not one.kept.done():
                one.kept.set_result(None)
        self._tell([one.entry for one in noted if isinstance(one.entry, RunEvent)])

    def _failed(self, noted: list[_Noted], error: DragomanError) -> None:
        """Whoever waits hears of it, and what they wrote is theirs to write again; the rest stays."""
        for one in noted:
            if one.kept is not None and not one.kept.done():
                one.kept.set_exception(error)
        self._noted = [one for one in noted if one.kept is None] + self._noted
        if self._noted and not self._closing:
            self._something.set()

    def _close(self) -> None:
        self._closing = True
        self._something.set()
        self._urgent.set()


def _batch(entries: Sequence[Entry]) -> Batch:
    runs = {entry.id: entry for entry in entries if isinstance(entry, Run)}  # the last word counts
    return Batch(
        steps=[entry for entry in entries if isinstance(entry, Step)],
        events=[entry for entry in entries if isinstance(entry, RunEvent)],
        runs=[*runs.values()],
        messages=[entry for entry in entries if isinstance(entry, Message)],
    )


@asynccontextmanager
async def open_journal(rows: RunRows, tell: Callable[[Sequence[RunEvent]], None]) -> AsyncGenerator[Journal]:
    """Writes while the block runs, and writes the rest within a bound at its end."""
    journal = Journal(rows, tell)
    writer = asyncio.ensure_future(journal._keep())  # pyright: ignore[reportPrivateUsage]
    try:
        yield journal
    finally:
        journal._close()  # pyright: ignore[reportPrivateUsage]
        await asyncio.wait([writer], timeout=_LAST_WORDS)
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
