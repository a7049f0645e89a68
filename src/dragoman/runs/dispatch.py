"""Which runs this process executes: those it accepted, and those that nobody holds any more.

A claim is a lease in the store, by the store's clock. While it is renewed nobody else touches the run; a
process that died, or that could not renew, loses it to whoever looks next, and stops by itself before that.
The same on SQLite and PostgreSQL.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta

from dragoman.background_tasks import BackgroundTasks, Supervisor
from dragoman.errors import DragomanError
from dragoman.run import Message, Run
from dragoman.runs.execution import RunDependencies, RunExecution
from dragoman.runs.run_endings import queued
from dragoman.runs.run_family import RunFamily
from dragoman.runs.workers import dead_among
from dragoman.store.protocols import RunStore
from dragoman.store.records import AcceptedRun, NewRun
from dragoman.telemetry.logs import get_logger

_ACCEPTED_AT_ONCE = (
    50  # rows are made ready on the event loop: more between two awaits would be felt by calls
)


class RunAcceptance:
    """`tasks` belong to who made it."""

    def __init__(self, rows: RunStore, tasks: BackgroundTasks) -> None:
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
            self._tasks.start(self._write(), "accept runs")
        return await told

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_ACCEPTED_AT_ONCE], self._waiting[_ACCEPTED_AT_ONCE:]
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


# From the last renewal until another process may take a run of one that died where nobody can see it. Three
# renewals in a row must fail first.
LEASE = timedelta(seconds=10)
_RENEW_EVERY = 2.5
_LET_GO = LEASE.total_seconds() - 1.0  # seconds after the last renewal in which what is held here is stopped
_HEAR_EVERY = 0.4  # seconds until a wish to stop that was said in another process is heard
_CLAIM_EVERY = 1.0
_MOST = 200  # runs at work in one process; those that wait for a person do not count
_AT_ONCE = 50
_COURTESY = 0.5


class RunDispatcher:
    """Owns the tasks of the runs that are executed here."""

    def __init__(self, parts: RunDependencies, tasks: BackgroundTasks, most: int = _MOST) -> None:
        self.worker = parts.journal.worker
        self._parts = parts
        self._tasks = tasks
        self._most = most
        self._families: dict[str, tuple[RunFamily, asyncio.Task[None]]] = {}
        self._look = asyncio.Event()
        self._clock = parts.clock
        self._renewed = self._now()
        self._letting_go = asyncio.get_running_loop().call_later(_LET_GO, self._let_go)
        self._next_claim = 0.0
        self._left = False  # a run was accepted here that must wait for its turn
        self._acceptances = RunAcceptance(parts.runs, tasks)
        self._accepting = 0
        self._may_start = asyncio.Event()
        self._may_start.set()
        parts.journal.lost = self._lose

    async def accept(self, run: Run, message: Message | None) -> AcceptedRun:
        """Writes it down, and begins it if it is its turn and there is room."""
        new = NewRun(run, message, [queued(run)])
        if self._room() > 0:
            new = replace(new, worker=self.worker, until=self._clock.now() + LEASE)
        asked_at = self._now()
        accepted = await self._acceptances.accept(new)
        if accepted.run.worker == self.worker:
            self._parts.streams.begin(accepted.run, len(new.events))
            self._start(accepted.run, asked_at)
        else:
            self._left = True
        self._parts.streams.ring_thread(accepted.run)
        return accepted

    @contextmanager
    def holding_starts(self) -> Generator[None]:
        """A start barrier: accepted runs wait until no such block is open, so acceptance answers first."""
        self._accepting += 1
        self._may_start.clear()
        try:
            yield
        finally:
            self._accepting -= 1
            if not self._accepting:
                self._may_start.set()

    def cancel(self, root: str) -> bool:
        """Stops a run that is executed here, with all that is under it. False when it is not."""
        held = self._families.get(root)
        if held is None:
            return False
        family, task = held
        if not family.cancelled:  # once: a second time would cut short what is said of the first
            family.cancelled = True
            if family.is_ready:
                task.cancel()
        return True

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._families)

    @property
    def at_work(self) -> int:
        """How many of them do not wait for a person."""
        return sum(not family.clock.is_waiting for family, _ in self._families.values())

    def leave(self) -> None:
        """The process stops: whoever takes the runs up finds them as they are now."""
        self._letting_go.cancel()
        for family, _ in self._families.values():
            family.left = True

    def wake(self) -> None:
        """There may be something to take, or a wish to hear."""
        self._next_claim = 0.0
        self._look.set()

    async def keep(self) -> None:
        """Looks for work, renews what is held, hears of wishes to stop. Until it is cancelled."""
        while True:
            try:
                await self._round()
            except DragomanError as error:
                get_logger().warning("runs cannot be looked for", error=error.message)
                # Others come back at the same moment: who holds runs renews them before anybody takes them.
                self._next_claim = self._now() + _RENEW_EVERY
            with suppress(TimeoutError):
                async with asyncio.timeout(_HEAR_EVERY):
                    await self._look.wait()
            self._look.clear()

    async def _round(self) -> None:
        if self._families:
            await self._renew()
            for root in await self._parts.runs.cancels(self.worker):
                self.cancel(root)
        if self._now() >= self._next_claim:
            await self._claim()

    async def _renew(self) -> None:
        if self._now() - self._renewed < _RENEW_EVERY:
            return
        wanted, asked_at = self.held, self._now()
        await self._clock.read()
        # One that was left here for a fault is not renewed: whoever looks when its lease is over takes it.
        held = await self._parts.runs.renew(self.worker, self._clock.now() + LEASE, wanted)
        self._are_renewed(asked_at)
        for root in wanted - held:
            self._abandon(root)

    async def _claim(self) -> None:
        room = self._room()
        if room <= 0:
            return
        await self._clock.read()
        now, asked_at = self._clock.now(), self._now()
        most = min(room, _AT_ONCE)
        self._left = False
        dead = dead_among(await self._parts.runs.workers())
        found = await self._parts.runs.claim(self.worker, now + LEASE, now, dead=dead, limit=most)
        for run in found:
            self._start(run, asked_at)
        if found:
            self._left = True
        if len(found) == most:
            self._look.set()  # there is more where this came from
        else:
            self._next_claim = self._now() + _CLAIM_EVERY

    def _start(self, run: Run, leased_at: float) -> None:
        if run.id in self._families:
            return
        family = RunFamily(run)
        if not self._families:
            self._are_renewed(leased_at)
        task = self._tasks.start(self._execute(run, family), f"run {run.id}")
        self._families[run.id] = (family, task)

    async def _execute(self, run: Run, family: RunFamily) -> None:
        parts = self._parts
        try:
            with suppress(TimeoutError):  # first all whose messages are being accepted get their answers
                async with asyncio.timeout(_COURTESY):
                    await self._may_start.wait()
            await family.prepare(parts.runs)
            parts.streams.begin(run, family.number)
            await RunExecution(run, family, parts).execute()
        except DragomanError as error:
            # The store is away: the lease will be over, and whoever looks then takes the run on.
            get_logger().warning("a run was left", run=run.id, error=error.message)
        except Exception as error:  # noqa: BLE001
            # boundary: a fault of ours in one run must not end the others
            get_logger().error("a run was left", run=run.id, error=f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:
            if not family.cancelled and not family.lost:
                raise
        finally:
            parts.streams.end(family.root)
            self._families.pop(run.id, None)
            if self._left:
                self.wake()

    def _lose(self, runs: frozenset[str]) -> None:
        """Nothing is written of these: another process has them, or they were removed."""
        for root, (family, _) in list(self._families.items()):
            if root in runs or not runs.isdisjoint(family.members):
                self._abandon(root)

    def _abandon(self, root: str) -> None:
        """Another process has it: nothing more is written about it here."""
        if (held := self._families.get(root)) and not held[0].lost:
            get_logger().warning("a run is no longer held here", run=root)
            held[0].lost = True
            held[1].cancel()

    def _are_renewed(self, at: float) -> None:
        self._renewed = at
        self._letting_go.cancel()
        self._letting_go = asyncio.get_running_loop().call_at(at + _LET_GO, self._let_go)

    def _let_go(self) -> None:
        """A timer and not part of a round: it must come also while the store keeps a round waiting."""
        for root in list(self._families):
            self._abandon(root)

    def _room(self) -> int:
        return self._most - self.at_work

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


@asynccontextmanager
async def open_dispatch(
    parts: RunDependencies, supervisor: Supervisor, most: int = _MOST
) -> AsyncGenerator[RunDispatcher]:
    """Executes while the block runs. At its end runs under way are left to whoever starts next."""
    try:
        async with BackgroundTasks() as tasks:
            dispatch = RunDispatcher(parts, tasks, most)
            async with supervisor.keeping(dispatch.keep, "execute runs", is_vital=True):
                try:
                    yield dispatch
                finally:
                    dispatch.leave()
    finally:
        await parts.journal.settle()
        with suppress(DragomanError):
            await parts.runs.release(parts.journal.worker)
