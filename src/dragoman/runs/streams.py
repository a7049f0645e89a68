"""Event streams of runs, from any number on: from memory for runs of this process, else as the process that
executes the run pushes them, else from the store.

An event is streamed only after it is stored, so a broken stream resumes without loss or duplicates: what was
not pushed is missing by its number.
"""

import asyncio
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field

from dragoman.cluster import Cluster
from dragoman.cluster.messages import EventBatch, Unreadable, dump_events, load_events
from dragoman.run import Run, RunEvent
from dragoman.store.protocols import RunStore
from dragoman.telemetry.logs import get_logger

_LOOK_EVERY = 0.5  # seconds until what another process wrote is noticed
_LOOK_WHEN_TOLD = 5.0  # the same where who wrote it tells
_LOOK_ALONE = 3.0  # for a new run in a thread where no other process is expected
_MOST_RECENT = 4_000


@dataclass(slots=True)
class _Live:
    """A root run that is executed in this process: its events from a number on, and the last one's number."""

    root: Run
    first: int
    last: int
    events: list[RunEvent] = field(default_factory=list[RunEvent])

    def after(self, number: int) -> Sequence[RunEvent] | None:
        """None where they do not reach back so far."""
        if number + 1 < self.first:
            return None
        return self.events[bisect_right(self.events, number, key=lambda event: event.number) :]


@dataclass(slots=True, eq=False)
class _Bell:
    """Whom a follower hears. `is_new` says that there may be more than what was pushed to it."""

    rung: asyncio.Event = field(default_factory=asyncio.Event)
    is_new: bool = True

    def ring(self) -> None:
        self.is_new = True
        self.rung.set()


class _Pushed:
    """Events of a root run that another process executes, for one follower in this one."""

    def __init__(self, run: Run, bell: _Bell) -> None:
        self._run = run
        self._bell = bell
        self._batches: deque[EventBatch] = deque(maxlen=_MOST_RECENT)

    def heard(self, message: bytes) -> None:
        try:
            batch = load_events(message)
        except Unreadable as fault:
            get_logger().warning("cluster.unreadable", cause=str(fault))
            return
        if (batch.workspace, batch.root) == (self._run.workspace, self._run.root):
            self._batches.append(batch)
            self._bell.rung.set()

    def after(self, number: int) -> Sequence[RunEvent] | None:
        """What follows on it; None where something is missing between."""
        events: list[RunEvent] = []
        batches, self._batches = self._batches, deque(maxlen=_MOST_RECENT)
        for batch in batches:
            if batch.after > number:
                return None
            new = [one for one in batch.events if one.number > number]
            events += new
            number = max([number, *(one.number for one in new)])
        return events


class RunStreams:
    def __init__(self, rows: RunStore, cluster: Cluster, *, has_company: bool = True) -> None:
        """`has_company`: other processes may work on the same threads."""
        self._look_for_runs = _LOOK_EVERY if has_company else _LOOK_ALONE
        self._rows = rows
        self._cluster = cluster
        self._live: dict[str, _Live] = {}
        self._bells: defaultdict[str, set[_Bell]] = defaultdict(set)
        self._closed = False

    @contextmanager
    def listening(self) -> Generator[None]:
        """While the block runs, what other processes tell of new runs is heard."""
        with self._cluster.listen("thread", self._heard):
            yield

    def begin(self, root: Run, last: int) -> None:
        """It is executed here from now on; `last` is the number of the last event from before."""
        self._live[root.id] = _Live(root, first=last + 1, last=last)
        self._ring(root.id)

    def find_live(self, root: str) -> Run | None:
        """A root run that is executed here, as it was when it began."""
        live = self._live.get(root)
        return None if live is None else live.root

    def end(self, root: Run) -> None:
        self._live.pop(root.id, None)
        self._ring(root.id)

    def publish(self, events: Sequence[RunEvent]) -> None:
        """They are kept: whoever follows, in any process, may have them."""
        told: dict[str, EventBatch] = {}
        for event in events:
            live = self._live.get(event.root)
            if event.root not in told:
                after = event.number - 1 if live is None else live.last
                told[event.root] = EventBatch(event.workspace, event.root, after, [])
            told[event.root].events.append(event)
            if live is not None:
                live.last = event.number
                live.events.append(event)
                if len(live.events) > _MOST_RECENT:
                    del live.events[: _MOST_RECENT // 2]
                    live.first = live.events[0].number
        for root, batch in told.items():
            self._ring(root)
            if self._cluster.is_connected:
                self._cluster.streams.push(root, dump_events(batch))

    def ring_thread(self, run: Run) -> None:
        """A thread has a new root run."""
        self._cluster.tell("thread", _thread_of(run))

    async def follow(self, run: Run, after: int = 0) -> AsyncIterator[RunEvent]:
        """Every event of a root run from a number on, until its end."""
        last, pushed = after, None
        async with AsyncExitStack() as stack:
            bell = stack.enter_context(_rung(self._bells, run.root))
            while not self._closed:
                bell.rung.clear()
                if pushed is None and run.root not in self._live:
                    pushed = _Pushed(run, bell)
                    await stack.enter_async_context(self._cluster.streams.follow(run.root, pushed.heard))
                events, is_stored = await self._after(run, last, pushed, bell)
                for event in events:
                    yield event
                    last = event.number
                    if event.kind == "run.finished" and event.run == run.root:
                        return
                if events:
                    continue
                if is_stored and await self._is_over(run, last):
                    return
                is_told = run.root in self._live or self._cluster.is_connected
                await _wait(bell, _LOOK_WHEN_TOLD if is_told else _LOOK_EVERY)

    async def follow_thread(
        self, workspace: str, user: str, thread: str, after: tuple[str, int] | None = None
    ) -> AsyncIterator[RunEvent]:
        """Every event of a thread's root runs, one run after the other, without end.

        Without `after`: from the first run that has not finished.
        """
        message, number = 0, 0
        key = _key(workspace, user, thread)
        current = await self._rows.find(workspace, after[0]) if after else None
        if current is not None and current.user == user and current.thread == thread and after is not None:
            message, number = (current.message or 1) - 1, after[1]
        elif after is None:
            message = await self._first_open(workspace, user, thread)
        with _rung(self._bells, key) as bell:
            while not self._closed:
                bell.rung.clear()
                roots = await self._rows.roots_after(workspace, user, thread, message)
                for root in roots:
                    async for event in self.follow(root, number):
                        yield event
                    message, number = root.message or message, 0
                if not roots:
                    is_told = self._cluster.is_connected
                    await _wait(bell, _LOOK_WHEN_TOLD if is_told else self._look_for_runs)

    def close(self) -> None:
        """Ends every stream."""
        self._closed = True
        self._heard("")

    async def _first_open(self, workspace: str, user: str, thread: str) -> int:
        roots = await self._rows.roots_after(workspace, user, thread, 0)
        unfinished = [root.message or 0 for root in roots if not root.is_finished]
        last = max((root.message or 0 for root in roots), default=0)
        return min(unfinished) - 1 if unfinished else last

    async def _after(
        self, run: Run, last: int, pushed: _Pushed | None, bell: _Bell
    ) -> tuple[Sequence[RunEvent], bool]:
        """What comes next, and whether the store said so."""
        live = self._live.get(run.root)
        if live is not None and (events := live.after(last)) is not None:
            return events, False
        events = None if pushed is None else pushed.after(last)
        if events or (events is not None and not bell.is_new):
            return events, False
        bell.is_new = False
        return await self._rows.events(run.workspace, run.root, after=last), True

    async def _is_over(self, run: Run, last: int) -> bool:
        if run.root in self._live:
            return False
        current = await self._rows.find(run.workspace, run.root)
        if current is None:
            return True
        return current.is_finished and await self._rows.last_event(run.workspace, run.root) <= last

    def _heard(self, name: str) -> None:
        """There is something new of this run or thread; "" of any."""
        for one in [name] if name else [*self._bells]:
            self._ring(one)

    def _ring(self, name: str) -> None:
        for bell in self._bells.get(name, ()):
            bell.ring()


class _rung:
    """A bell that rings while the block runs."""

    def __init__(self, bells: defaultdict[str, set[_Bell]], name: str) -> None:
        self._bells, self._name, self._bell = bells, name, _Bell()

    def __enter__(self) -> _Bell:
        self._bells[self._name].add(self._bell)
        return self._bell

    def __exit__(self, *exc: object) -> None:
        self._bells[self._name].discard(self._bell)
        if not self._bells[self._name]:
            del self._bells[self._name]


async def _wait(bell: _Bell, longest: float) -> None:
    """Until it rings; whoever heard nothing for so long looks anyway."""
    try:
        async with asyncio.timeout(longest):
            await bell.rung.wait()
    except TimeoutError:
        bell.is_new = True


def _key(workspace: str, user: str, thread: str) -> str:
    return f"{workspace}\0{user}\0{thread}"


def _thread_of(run: Run) -> str:
    return _key(run.workspace, run.user, run.thread)
