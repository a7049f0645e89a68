"""When a request must be answered, on the event loop's clock.

Progress moves it on, each time by the request's own time and never past its limit. While a person is asked it
stands still: their time is not the server's.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType


class Deadline:
    """Of one request. `at` is where it stands now, `waited` how many seconds went by for people."""

    __slots__ = ("_began_waiting", "_clock", "_latest", "_seconds", "_timeout", "_waits", "at", "waited")

    def __init__(self, seconds: float, longest: float = 0.0) -> None:
        """`longest` is how many seconds the request may take, however much progress it makes."""
        self._clock = asyncio.get_running_loop().time
        now = self._clock()
        self._seconds = seconds
        self.at = now + seconds
        self._latest = now + max(seconds, longest)
        self._timeout: asyncio.Timeout | None = None
        self._waits = 0
        self._began_waiting = 0.0
        self.waited = 0.0

    def enforced(self) -> "_Enforced":
        """A block: `TimeoutError` where it is not done in time."""
        return _Enforced(self)

    @property
    def facts(self) -> tuple[float, float, float]:
        """Seconds until then, by how many progress moves it on, and until where at most."""
        now = self._clock()
        return self.at - now, self._seconds, self._latest - now

    @classmethod
    def of(cls, left: float, seconds: float, longest: float) -> "Deadline":
        """The same somewhere else."""
        made = cls(seconds, longest)
        made.at = made._clock() + left
        made._latest = max(made._latest, made.at)
        return made

    @property
    def left(self) -> float:
        """Seconds until then."""
        return self.at - self._clock()

    def extend(self) -> None:
        """The server told of progress."""
        self.at = max(self.at, min(self._clock() + self._seconds, self._latest))
        self._apply()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """A person is asked. Several may be at once: the time counts once."""
        if self._waits == 0:
            self._began_waiting = self._clock()
        self._waits += 1
        self._apply()
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                took = self._clock() - self._began_waiting
                self.waited += took
                self.at += took
                self._latest += took
            self._apply()

    def begin(self) -> asyncio.Timeout:
        self._timeout = asyncio.timeout_at(None if self._waits else self.at)
        return self._timeout

    def end(self) -> None:
        self._timeout = None

    def _apply(self) -> None:
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(None if self._waits else self.at)


class _Enforced:
    """By hand: every call enters one, and a generator would cost it twice as much."""

    __slots__ = ("_deadline", "_timeout")

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    async def __aenter__(self) -> None:
        self._timeout = self._deadline.begin()
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._deadline.end()
        return await self._timeout.__aexit__(kind, error, trace)
