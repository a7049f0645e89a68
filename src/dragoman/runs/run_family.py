"""A root run and the runs under it, as one process executes them: numbers of events, usage, the clock.

A family lives as long as its root is executed; all that must outlive that is in the journal.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dragoman.agents.offers import SourceNumbers
from dragoman.errors import LimitReached
from dragoman.run import Run, RunEvent, RunEventKind, RunLimits, RunUsage
from dragoman.runs.run_log import log_event
from dragoman.store.protocols import RunStore


class WorkClock:
    """Counts time of work against a limit; it stands still while a person is waited for."""

    def __init__(self) -> None:
        self._timeout: asyncio.Timeout | None = None
        self._waits = 0
        self._left: float | None = None
        self._began: float | None = None
        self._paused = 0.0
        self._waited = 0.0
        self.before = 0.0  # seconds of work until it was taken up again, here or elsewhere

    def start(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._began = asyncio.get_running_loop().time()

    @property
    def worked(self) -> float:
        """Seconds of work, once no one is waited for."""
        if self._began is None:
            return self.before
        return self.before + asyncio.get_running_loop().time() - self._began - self._waited

    def pause(self) -> None:
        self._waits += 1
        if self._waits == 1:
            self._paused = asyncio.get_running_loop().time()
        timeout = self._timeout
        if self._waits != 1 or timeout is None or timeout.expired():
            return
        if (when := timeout.when()) is not None:
            self._left = max(0.0, when - asyncio.get_running_loop().time())
            timeout.reschedule(None)

    def go_on(self) -> None:
        self._waits -= 1
        if self._waits == 0:
            self._waited += asyncio.get_running_loop().time() - self._paused
        timeout = self._timeout
        if self._waits == 0 and timeout is not None and self._left is not None and not timeout.expired():
            timeout.reschedule(asyncio.get_running_loop().time() + self._left)
            self._left = None

    @property
    def is_waiting(self) -> bool:
        return self._waits > 0


@dataclass(slots=True)
class RunFamily:
    """`cancelled`: a person wants its end. `lost`: another process has it. `left`: this process stops.
    `rests`: it was taken up, and is not gone on with until a person has answered.

    `begun`: calls so far. `unrepeatable`: calls under way that must not be made twice.
    """

    root: Run
    number: int = 0
    usage: RunUsage = field(default_factory=RunUsage)
    begun: int = 0
    unrepeatable: set[str] = field(default_factory=set[str])
    cancelled: bool = False
    lost: bool = False
    left: bool = False
    rests: bool = False
    has_asked: bool = False
    has_told_calls: bool = False  # that it has made all that it may
    is_ready: bool = False
    clock: WorkClock = field(default_factory=WorkClock)
    numbers: SourceNumbers = field(default_factory=SourceNumbers)
    members: set[str] = field(default_factory=set[str])
    earlier: Sequence[Run] = ()  # child runs from before it was taken up again
    summing_up: asyncio.Lock = field(default_factory=asyncio.Lock)  # of several agents the first does it

    async def prepare(self, rows: RunStore) -> None:
        """What is known of it from before: the last number, and what its finished child runs used."""
        root = self.root
        self.number = 1  # that it was queued; nothing else is told before it began
        if root.started_at is not None:
            self.number, self.clock.before = await _told_before(root, rows)
            self.has_asked = True  # perhaps
            self.earlier = [run for run in await rows.family(root.workspace, root.id) if not run.is_root]
            for run in self.earlier:
                if run.is_finished:
                    self.resume_with(run.usage)
        self.cancelled = self.cancelled or root.cancel_asked
        self.is_ready = True

    @property
    def limits(self) -> RunLimits:
        return self.root.limits

    def event(self, run: Run, kind: RunEventKind, data: dict[str, Any] | None = None) -> RunEvent:
        self.number += 1
        made = RunEvent(
            workspace=run.workspace,
            root=self.root.id,
            run=run.id,
            kind=kind,
            number=self.number,
            agent=run.agent,
            data=data or {},
        )
        log_event(made)
        return made

    def add(self, usage: RunUsage) -> None:
        self.usage = self.usage.plus(usage)

    def resume_with(self, usage: RunUsage) -> None:
        """What was used before the run was taken up again counts on."""
        self.add(usage)
        self.begun += usage.calls

    def check_request(self) -> None:
        """Before a model is asked again."""
        limits, used = self.limits, self.usage
        tokens = used.input_tokens + used.output_tokens
        for name, limit, amount in (
            ("requests to the model", limits.requests, used.requests),
            ("tokens", limits.tokens, tokens),
            ("dollars", limits.cost, used.cost),
        ):
            if limit is not None and amount >= limit:
                most = f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
                raise LimitReached(f"the run has used its {most} {name}", hint=self.more_hint)

    @property
    def more_hint(self) -> str:
        """How a person whose run has reached a limit gets more: the next one knows what this one did."""
        if not self.root.thread:
            return "ask for less at once, or allow more for the run"
        return 'ask for less at once, or write "continue": it goes on with as much again'

    def begin_call(self) -> bool:
        """Counted when it begins: of several at once no more than are left go."""
        if self.limits.calls is not None and self.begun >= self.limits.calls:
            return False
        self.begun += 1
        return True


_PAGE = 1000


async def _told_before(root: Run, rows: RunStore) -> tuple[int, float]:
    """The number of its last event, and seconds of work by its events; until it was taken up again nobody
    worked.
    """
    worked, number = 0.0, 0
    last: datetime | None = None
    waiting: set[str] = set()
    is_more = True
    while is_more:
        page = await rows.events(root.workspace, root.id, after=number, limit=_PAGE)
        for event in page:
            if event.run == root.id and event.kind in ("run.started", "run.resumed"):
                last, waiting = None, set()
            if last is not None and not waiting:
                worked += max(0.0, (event.time - last).total_seconds())
            if event.kind == "run.waiting":
                waiting.add(event.run)
            elif event.kind == "run.continued":
                waiting.discard(event.run)
            last = event.time
            number = event.number
        is_more = len(page) == _PAGE
    return number, worked
