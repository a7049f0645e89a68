"""A root run and the runs under it, as one process executes them: numbers of events, usage, the clock.

A family lives as long as its root is executed; all that must outlive that is in the journal.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from dragoman.errors import LimitReached
from dragoman.run import Run, RunEvent, RunEventKind, RunLimits, RunUsage


class Clock:
    """Counts time of work against a limit; it stands still while a person is waited for."""

    def __init__(self) -> None:
        self._timeout: asyncio.Timeout | None = None
        self._waits = 0
        self._left: float | None = None

    def start(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout

    def pause(self) -> None:
        self._waits += 1
        timeout = self._timeout
        if self._waits == 1 and timeout is not None and (when := timeout.when()) is not None:
            self._left = max(0.0, when - asyncio.get_running_loop().time())
            timeout.reschedule(None)

    def go_on(self) -> None:
        self._waits -= 1
        if self._waits == 0 and self._timeout is not None and self._left is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)
            self._left = None

    @property
    def is_waiting(self) -> bool:
        return self._waits > 0


@dataclass(slots=True)
class Family:
    root: Run
    number: int = 0
    usage: RunUsage = field(default_factory=RunUsage)
    cancelled: bool = False
    clock: Clock = field(default_factory=Clock)

    @property
    def limits(self) -> RunLimits:
        return self.root.limits

    def event(self, run: Run, kind: RunEventKind, data: dict[str, Any] | None = None) -> RunEvent:
        self.number += 1
        return RunEvent(
            workspace=run.workspace,
            root=self.root.id,
            run=run.id,
            kind=kind,
            number=self.number,
            agent=run.agent,
            data=data or {},
        )

    def add(self, usage: RunUsage) -> None:
        self.usage = self.usage.plus(usage)

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
                raise LimitReached(
                    f"the run has used its {limit:g} {name}",
                    hint="ask for less at once, or allow more for the run",
                )

    def may_call(self) -> bool:
        return self.limits.calls is None or self.usage.calls < self.limits.calls
