"""The journal of runs, with group commit: several runs share a transaction.

`write` returns when it is on disk; what is `note`d is written a moment later, in the same order. Only the
process that holds a run writes to its journal: one that lost it is told so, and nothing is written. Events
reach listeners only once they are stored. Knows no agent and no model.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from dragoman.background_tasks import Supervisor
from dragoman.errors import ShuttingDown, StoreUnavailable
from dragoman.run import Message, Run, RunEvent, Step
from dragoman.runs.workers import Worker
from dragoman.store.protocols import RunStore
from dragoman.store.records import AgentWorked, JournalBatch
from dragoman.telemetry.logs import get_logger

Entry = Step | RunEvent | Run | Message | AgentWorked

_SOON = 0.025  # seconds that what nobody waits for may lie in memory
_AGAIN = 0.5  # seconds until the store is asked again after a failure
_PATIENCE = 7.0  # seconds that a run stands still while the store is away; less than a lease
_LAST_WORDS = 3.0
_CROWD = 10  # unwritten entries beside which who begins waits
_MOST_NOTED = 50_000  # entries that may wait while the store is away


@dataclass(slots=True)
class _Noted:
    entry: Entry
    kept: "asyncio.Future[None] | None"

    @property
    def run(self) -> str | None:
        """As the store calls it when it says of whom nothing was written."""
        entry = self.entry
        if isinstance(entry, RunEvent):
            return entry.root
        return entry.id if isinstance(entry, Run) else entry.run


class Journal:
    """`worker` is this process as the holder of runs; `lost` hears which runs it holds no longer."""

    def __init__(self, rows: RunStore, tell: Callable[[Sequence[RunEvent]], None], worker: Worker) -> None:
        self.worker = str(worker)
        self.lost: Callable[[frozenset[str]], None] = lambda _: None
        self._rows = rows
        self._tell = tell
        self._noted: list[_Noted] = []
        self._something = asyncio.Event()
        self._urgent = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._away_since: float | None = None
        self._closing = False

    def note(self, *entries: Entry) -> None:
        """Written within a moment. Text that follows text of the same run is joined to it."""
        for entry in entries:
            if not self._joined(entry):
                self._noted.append(_Noted(entry, None))
        if len(self._noted) > _MOST_NOTED:
            raise ShuttingDown("the journal cannot be written", hint="see whether the database answers")
        self._something.set()

    async def begin(self, *entries: Entry) -> None:
        """Noted; in a crowd written. Of many that begin at once each is told before any of them works."""
        if len(self._noted) < _CROWD:
            self.note(*entries)
        else:
            await self.write(*entries)

    async def write(self, *entries: Entry) -> None:
        """Returns when it is on disk, with everything noted before. While the store is away it waits.

        `StoreUnavailable` when that lasts too long; cancelled when another process holds the run.
        """
        await self.put(*entries)

    def put(self, *entries: Entry) -> "asyncio.Future[None]":
        """The same for who must not be interrupted: in its place at once, done when it is on disk."""
        if self._closing:
            raise ShuttingDown("the journal is closed", hint="the run goes on after the next start")
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._noted += [_Noted(entry, kept) for entry in entries]
        self._something.set()
        self._urgent.set()
        return kept

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

    async def keep(self) -> None:
        """Writes until it is closed and all is written."""
        while not (self._closing and not self._noted):
            await self._something.wait()
            if not self._closing:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_SOON):
                        await self._urgent.wait()
            await self._flush()

    async def settle(self) -> None:
        """Writes what was noted: before runs are given back, for then nothing more is written of them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._flush()

    async def _flush(self) -> None:
        async with self._flushing:  # in order
            noted, self._noted = self._noted, []
            self._something.clear()
            self._urgent.clear()
            if noted:
                await self._write(noted)

    async def _write(self, noted: list[_Noted]) -> None:
        try:
            lost = await self._rows.write_held(_batch(noted), self.worker)
        except StoreUnavailable as error:
            await self._later(noted, error)
        except Exception:  # noqa: BLE001
            # boundary: what cannot be written of one run must not hold up the others
            await self._one_by_one(noted)
        else:
            self._written(noted, lost)

    async def _one_by_one(self, noted: list[_Noted]) -> None:
        groups: defaultdict[str, list[_Noted]] = defaultdict(list)
        roots = {one.entry.run: one.entry.root for one in noted if isinstance(one.entry, RunEvent)}
        for one in noted:
            groups[roots.get(one.run or "", one.run or "")].append(one)
        for run, group in groups.items():
            try:
                lost = await self._rows.write_held(_batch(group), self.worker)
            except StoreUnavailable as error:
                await self._later(group, error)
            except Exception as error:  # noqa: BLE001
                # boundary: a run whose journal has a hole must not go on here
                get_logger().error("a run's journal cannot be written", run=run, error=str(error))
                self._written(group, frozenset({one.run or "" for one in group}))
            else:
                self._written(group, lost)

    def _written(self, noted: Sequence[_Noted], lost: frozenset[str]) -> None:
        self._away_since = None
        if lost:
            self.lost(lost)
        entries = [one.entry for one in noted if one.run not in lost]
        try:
            # Before those who wrote it go on: of a crowd that begins each is told before any of them works.
            self._tell([entry for entry in entries if isinstance(entry, RunEvent)])
        finally:
            for one in noted:
                if one.kept is not None and not one.kept.done():
                    one.kept.cancel() if one.run in lost else one.kept.set_result(None)

    async def _later(self, noted: list[_Noted], error: StoreUnavailable) -> None:
        """All of it again in a moment. After a while who waits hears of it; what they wrote is given up."""
        now = asyncio.get_running_loop().time()
        if self._away_since is None:
            self._away_since = now
            get_logger().warning("the journal cannot be written", error=error.message)
        if self._closing or now - self._away_since > _PATIENCE:
            for one in noted:
                if one.kept is not None and not one.kept.done():
                    one.kept.set_exception(error)
            noted = [one for one in noted if one.kept is None]
        self._noted = noted + self._noted
        self._something.set()
        await asyncio.sleep(_SOON if self._closing else _AGAIN)

    def close(self) -> None:
        """The rest is written now; nothing more is taken."""
        self._closing = True
        self._something.set()
        self._urgent.set()


def _batch(noted: Iterable[_Noted]) -> JournalBatch:
    entries = [one.entry for one in noted]
    runs = {entry.id: entry for entry in entries if isinstance(entry, Run)}  # the last word counts
    return JournalBatch(
        steps=[entry for entry in entries if isinstance(entry, Step)],
        events=[entry for entry in entries if isinstance(entry, RunEvent)],
        runs=[*runs.values()],
        messages=[entry for entry in entries if isinstance(entry, Message)],
        worked=[entry for entry in entries if isinstance(entry, AgentWorked)],
    )


@asynccontextmanager
async def open_journal(
    rows: RunStore, tell: Callable[[Sequence[RunEvent]], None], worker: Worker, supervisor: Supervisor
) -> AsyncGenerator[Journal]:
    """Writes while the block runs, and writes the rest within a time limit at its end."""
    journal = Journal(rows, tell, worker)
    async with supervisor.keeping(journal.keep, "write the journal of runs", is_vital=True) as writer:
        try:
            yield journal
        finally:
            journal.close()
            await asyncio.wait([writer], timeout=_LAST_WORDS)
