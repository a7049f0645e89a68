"""Which runs this process executes: those it accepted, and those that nobody holds any more.

A claim is a lease in the store, by the store's clock. While it is renewed nobody else touches the run; a
process that died, or that could not renew, loses it to whoever looks next, and stops by itself before that.
The same on SQLite and PostgreSQL. Who looks, and when, is the cluster's to say (`cluster.work`): one process
looks by itself, nodes are handed what waits.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

from dragoman.background_tasks import BackgroundTasks, Supervisor
from dragoman.cluster import Cluster, Node, RunKey
from dragoman.errors import DragomanError, ShuttingDown, StoreUnavailable
from dragoman.run import Message, Question, Run
from dragoman.runs.execution import RunDependencies, RunExecution
from dragoman.runs.run_endings import queued
from dragoman.runs.run_family import RunFamily
from dragoman.runs.workers import Worker, dead_among
from dragoman.store.protocols import RunStore
from dragoman.store.records import AcceptedRun, BegunThread, NewRun, RestingRun
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


# From the last renewal until another process may take a run of one that died where nobody can see it. Several
# renewals in a row must fail first.
LEASE = timedelta(seconds=10)
_RENEW_EVERY = 1.5
# The same of a node that gives no sign of life: two renewals must fail.
_SILENCE = timedelta(seconds=3)
_LET_GO = LEASE.total_seconds() - 1.0  # seconds after the last renewal in which what is held here is stopped
_HEAR_EVERY = 0.4  # seconds until a wish to stop that was said in another process is heard
_AFTER_FAILURE = 2.5  # seconds in which nothing is claimed: who holds runs renews them first
_SWEEP_EVERY = 5.0  # seconds until what waits and nobody was handed is found
_SWEEP_SOON = _HEAR_EVERY / 2  # with every round for a while after nodes went, or NATS came back
_MOST = 200  # runs at work in one process; those that wait for a person do not count
_AT_ONCE = 50
_SWEPT = 500
_COURTESY = 0.5
_LAST_CALL = 0.02  # seconds between two looks whether a last call has ended


class RunDispatcher:
    """Owns the tasks of the runs that are executed here."""

    def __init__(self, parts: RunDependencies, tasks: BackgroundTasks, most: int = _MOST) -> None:
        self.worker = parts.journal.worker
        self._parts = parts
        self._tasks = tasks
        self._most = most
        self._cluster = parts.cluster
        self._work = parts.cluster.work
        self._families: dict[str, tuple[RunFamily, asyncio.Task[None]]] = {}
        self._look = asyncio.Event()
        self._clock = parts.clock
        self._renewed = self._now()
        self._letting_go = asyncio.get_running_loop().call_later(_LET_GO, self._let_go)
        self._claims_from = 0.0
        self._left = False  # a run was accepted here that must wait for its turn
        self._unfinished: dict[str, float] = {}  # left here before their end, and when
        self._is_leaving = False
        self._sweeps = _SweepTimes(parts.cluster)
        self._acceptances = RunAcceptance(parts.runs, tasks)
        self._accepting = 0
        self._may_start = asyncio.Event()
        self._may_start.set()
        parts.journal.lost = self._lose

    async def accept(
        self, run: Run, message: Message | None, begun: BegunThread | None = None
    ) -> AcceptedRun:
        """Writes it down, and begins it if it is its turn and there is room."""
        new = NewRun(run, message, [queued(run)], begun=begun)
        if self._room() > 0:
            new = replace(new, worker=self.worker, until=self._clock.now() + LEASE)
        asked_at = self._now()
        accepted = await self._acceptances.accept(new)
        if accepted.run.worker == self.worker and self._is_leaving:
            await self._give_back([accepted.run.id])
        elif accepted.run.worker == self.worker:
            self._parts.streams.begin(accepted.run, len(new.events))
            self._start(accepted.run, asked_at)
        else:
            self._left = True
            if self._work.is_handed_out:
                self._work.put([_key(accepted.run)])
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
            if family.is_ready or family.rests:  # else it has not begun, and looks before it does
                task.cancel()
        return True

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._families)

    @property
    def at_work(self) -> int:
        """How many of them do not wait for a person."""
        return sum(not (family.rests or family.clock.is_waiting) for family, _ in self._families.values())

    async def hand_over(self, patience: float) -> None:
        """The process stops: nothing more begins here, and what is under way is given back, to be taken up
        elsewhere as its journal has it. A call that must not be made twice may end first, for `patience`
        seconds.
        """
        self._is_leaving = True
        left, stopped = dict(self._families), set[str]()
        for family, _ in left.values():
            family.left = True
        ends_at = self._now() + patience
        while left:
            for root, (family, task) in left.items():
                if root not in stopped and (not family.unrepeatable or self._now() >= ends_at):
                    stopped.add(root)
                    task.cancel()
            tasks = [task for _, task in left.values()]
            await asyncio.wait(tasks, timeout=_LAST_CALL, return_when=asyncio.FIRST_COMPLETED)
            if ended := [root for root, (_, task) in left.items() if task.done()]:
                left = {root: held for root, held in left.items() if root not in ended}
                await self._give_back(ended)
        await self._give_back(None)

    async def _give_back(self, runs: Collection[str] | None) -> None:
        """These, or all that the store says are held here."""
        await self._parts.journal.settle()
        with suppress(DragomanError):
            self._work.put(await self._parts.runs.release(self.worker, runs))

    def wake(self) -> None:
        """There may be a wish to hear."""
        self._look.set()

    async def keep(self) -> None:
        """Renews what is held, hears of wishes to stop, sees to it that what waits is handed out."""
        while True:
            try:
                await self._round()
            except DragomanError as error:
                self._store_is_away(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_HEAR_EVERY):
                    await self._look.wait()
            self._look.clear()

    async def take(self) -> None:
        """Takes what waits while there is room. Until the process leaves."""
        while not self._is_leaving:
            if (room := self._room()) <= 0:
                await asyncio.sleep(_HEAR_EVERY)
                continue
            try:
                async with self._work.take(min(room, _AT_ONCE)) as runs:
                    await asyncio.sleep(max(0.0, self._claims_from - self._now()))
                    await self._claim(runs, min(room, _AT_ONCE))
            except ShuttingDown:
                return
            except DragomanError as error:
                self._store_is_away(error)

    def _store_is_away(self, error: DragomanError) -> None:
        get_logger().warning("runs cannot be looked for", error=error.message)
        # Others come back at the same moment: who holds runs renews them before anybody takes them.
        self._claims_from = self._now() + _AFTER_FAILURE

    async def _round(self) -> None:
        if self._families:
            is_renewed = await self._renew()
            # Where wishes are told, a look now and then is enough.
            if is_renewed or not self._cluster.is_connected:
                for root in await self._parts.runs.cancels(self.worker):
                    self.cancel(root)
        if self._unfinished:
            await self._give_up()
        if self._sweeps.is_due(await self._cluster.nodes(), self._now()):
            await self._offer(limit=_SWEPT)

    async def _renew(self) -> bool:
        if self._now() - self._renewed < _RENEW_EVERY:
            return False
        wanted, asked_at = self.held, self._now()
        await self._clock.read()
        # One that was left here for a fault is not renewed: whoever looks when its lease is over takes it.
        held = await self._parts.runs.renew(self.worker, self._clock.now() + LEASE, wanted)
        self._are_renewed(asked_at)
        for root in wanted - held:
            self._abandon(root)
        return True

    async def _give_up(self) -> None:
        """What was left so long ago that its lease is over by the time that has passed here is nobody's, also
        where the clock of the store was set back since. Not at once: what fails again does so slowly.
        """
        latest = self._now() - LEASE.total_seconds()
        over = [run for run, left_at in self._unfinished.items() if left_at <= latest]
        if over:
            self._work.put(await self._parts.runs.release(self.worker, over))
            for run in over:
                self._unfinished.pop(run, None)

    async def _claim(self, wanted: Sequence[RunKey] | None, most: int) -> None:
        """These, or whatever may be claimed."""
        if self._is_leaving:
            raise ShuttingDown("this process takes no more runs")
        if wanted is not None and not wanted:
            return
        await self._clock.read()
        now, asked_at = self._clock.now(), self._now()
        self._left = False
        dead = await self._dead(now)
        found = await self._parts.runs.claim(
            self.worker, now + LEASE, now, dead=dead, limit=most, only=wanted
        )
        resting = await self._resting(found)
        if self._is_leaving:
            await self._give_back([run.id for run in found])
            return
        for run in found:
            self._start(run, asked_at, resting.get(run.id))
        if found:
            self._left = True
        if wanted is None and len(found) == most:
            self._work.put()  # there is more where this came from

    async def _resting(self, runs: Sequence[Run]) -> Mapping[str, RestingRun]:
        try:
            return await self._parts.questions.resting(runs)
        except DragomanError:
            return {}  # they are claimed: whoever goes on with them meets it again

    async def _offer(self, limit: int, thread: tuple[str, str, str] | None = None) -> None:
        """Puts what waits into the queue: NATS forgot it, who executed it is gone, or its turn has come."""
        await self._clock.read()
        now = self._clock.now()
        dead = await self._dead(now)
        self._work.put(await self._parts.runs.claimable(now, dead=dead, limit=limit, thread=thread))

    async def _dead(self, now: datetime) -> Sequence[str]:
        """Workers whose runs may be taken before their leases are over."""
        holders = await self._parts.runs.holders()
        silent = [worker for worker, held in holders.items() if held.until < now + LEASE - _SILENCE]
        return [*dead_among(holders), *(one for one in silent if self._is_gone(Worker.find(one)))]

    def _is_gone(self, worker: Worker | None) -> bool:
        return worker is not None and worker.node is not None and not self._cluster.may_live(worker.node)

    def _start(self, run: Run, leased_at: float, resting: RestingRun | None = None) -> None:
        if run.id in self._families:
            return
        family = RunFamily(run)
        self._unfinished.pop(run.id, None)
        if not self._families:
            self._are_renewed(leased_at)
        if resting is not None:
            self._parts.streams.begin(run, resting.last_event)
        question = None if resting is None else resting.question
        task = self._tasks.start(self._execute(run, family, question), f"run {run.id}")
        self._families[run.id] = (family, task)

    async def _execute(self, run: Run, family: RunFamily, question: Question | None) -> None:
        parts = self._parts
        try:
            if question is not None:
                await self._rest(family, question)
            with suppress(TimeoutError):  # first all whose messages are being accepted get their answers
                async with asyncio.timeout(_COURTESY):
                    await self._may_start.wait()
            await family.prepare(parts.runs)
            parts.streams.begin(run, family.number)
            await RunExecution(run, family, parts).execute()
            if run.thread and self._work.is_handed_out:
                await self._offer(1, (run.workspace, run.user, run.thread))
        except DragomanError as error:
            # The store is away: the lease will be over, and whoever looks then takes the run on.
            self._unfinished[run.id] = self._now()
            get_logger().warning("a run was left", run=run.id, error=error.message)
        except Exception as error:  # noqa: BLE001
            # boundary: a fault of ours in one run must not end the others
            self._unfinished[run.id] = self._now()
            get_logger().error("a run was left", run=run.id, error=f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:
            if family.lost:
                self._unfinished[run.id] = self._now()
            elif not family.cancelled:
                raise
        finally:
            parts.streams.end(family.root)
            self._families.pop(run.id, None)
            if self._left and not self._work.is_handed_out:
                self._work.put()

    async def _rest(self, family: RunFamily, question: Question) -> None:
        """Until there is an answer, or somebody wants its end. To go on with a run only to find that it still
        waits would make a restart with many of them slow.
        """
        task = asyncio.current_task()
        if task is None or family.cancelled:
            return
        family.rests = True
        try:
            while True:
                with suppress(StoreUnavailable):  # how long that may last is the lease's to say
                    await self._parts.questions.settled(question)
                    break
                await asyncio.sleep(_AFTER_FAILURE)
        except asyncio.CancelledError:
            if not family.cancelled or family.lost:
                raise
            task.uncancel()  # it goes on, to its end
        finally:
            family.rests = False

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
        return 0 if self._is_leaving else self._most - self.at_work

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class _SweepTimes:
    """When this node is to look for what waits and nobody was handed: one node does, often after a change."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: frozenset[str] = frozenset()
        self._was_handed_out = False
        self._soon_until = 0.0
        self._next = 0.0

    def is_due(self, nodes: Sequence[Node], now: float) -> bool:
        """To be asked several times a second."""
        living = frozenset(node.id for node in nodes)
        is_handed_out = self._cluster.work.is_handed_out
        if self._known - living or (is_handed_out and not self._was_handed_out):
            self._soon_until = now + LEASE.total_seconds()
            self._next = 0.0
        self._known, self._was_handed_out = living, is_handed_out
        eldest = next((node for node in nodes if "work" in node.roles), None)
        if not is_handed_out or eldest != self._cluster.node or now < self._next:
            return False
        self._next = now + (_SWEEP_SOON if now < self._soon_until else _SWEEP_EVERY)
        return True


def _key(run: Run) -> RunKey:
    return run.workspace, run.id


@asynccontextmanager
async def open_dispatch(
    parts: RunDependencies, supervisor: Supervisor, most: int = _MOST
) -> AsyncGenerator[RunDispatcher]:
    """Executes while the block runs. At its end runs under way are left to whoever takes them up."""
    async with BackgroundTasks() as tasks:
        dispatch = RunDispatcher(parts, tasks, most)
        async with (
            supervisor.keeping(dispatch.keep, "keep runs", is_vital=True),
            supervisor.keeping(dispatch.take, "execute runs", is_vital=True),
        ):
            try:
                yield dispatch
            finally:
                await dispatch.hand_over(0)
