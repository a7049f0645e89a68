"""Event streams of runs, from any number on: from memory for runs of this process, else from the store.

An event is streamed only after it is stored, so a broken stream resumes without loss or duplicates.
"""

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from dragoman.cluster import Cluster
from dragoman.run import Run, RunEvent
from dragoman.store.protocols import RunStore

_LOOK_EVERY = 0.5  # seconds until what another process wrote is noticed
_LOOK_WHEN_TOLD = 5.0  # the same where who wrote it tells
_LOOK_ALONE = 3.0  # for a new run in a thread where no other process is expected
_MOST_RECENT = 4_000


@dataclass(slots=True)
class _Live:
    """A root run that is executed in this process: its events from a number on."""

    first: int
    events: list[RunEvent] = field(default_factory=list[RunEvent])

    def after(self, number: int) -> Sequence[RunEvent] | None:
        """None where they do not reach back so far."""
        if number + 1 < self.first:
            return None
        return self.events[bisect_right(self.events, number, key=lambda event: event.number) :]


@dataclass(slots=True, eq=False)
class _Bell:
    rung: asyncio.Event = field(default_factory=asyncio.Event)


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
        """While the block runs, what other processes tell of their runs is heard."""
        with self._cluster.listen("run", self._heard), self._cluster.listen("thread", self._heard):
            yield

    def begin(self, root: Run, last: int) -> None:
        """It is executed here from now on; `last` is the number of the last event from before."""
        self._live[root.id] = _Live(first=last + 1)
        self._ring(root.id)

    def end(self, root: Run) -> None:
        self._live.pop(root.id, None)
        self._ring(root.id)

    def publish(self, events: Sequence[RunEvent]) -> None:
        """They are kept: whoever follows may have them."""
        for event in events:
            live = self._live.get(event.root)
            if live is not None:
                live.events.append(event)
                if len(live.events) > _MOST_RECENT:
                    del live.events[: _MOST_RECENT // 2]
                    live.first = live.events[0].number
        for root in {event.root for event in events}:
            self._cluster.tell("run", root)

    def ring_thread(self, run: Run) -> None:
        """A thread has a new root run."""
        self._cluster.tell("thread", _thread_of(run))

    async def follow(self, run: Run, after: int = 0) -> AsyncIterator[RunEvent]:
        """Every event of a root run from a number on, until its end."""
        last = after
        with _rung(self._bells, run.root) as bell:
            while not self._closed:
                bell.rung.clear()
                events = await self._after(run, last)
                for event in events:
                    yield event
                    last = event.number
                    if event.kind == "run.finished" and event.run == run.root:
                        return
                if events:
                    continue
                if await self._is_over(run, last):
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

    async def _after(self, run: Run, last: int) -> Sequence[RunEvent]:
        live = self._live.get(run.root)
        if live is not None and (events := live.after(last)) is not None:
            return events
        return await self._rows.events(run.workspace, run.root, after=last)

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
            bell.rung.set()


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
    with suppress(TimeoutError):
        async with asyncio.timeout(longest):
            await bell.rung.wait()


def _key(workspace: str, user: str, thread: str) -> str:
    return f"{workspace}\0{user}\0{thread}"


def _thread_of(run: Run) -> str:
    return _key(run.workspace, run.user, run.thread)
