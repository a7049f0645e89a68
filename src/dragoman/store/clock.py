"""The time by which leases begin and end: one clock for all processes of an installation."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

_READ_EVERY = 5.0  # seconds in which no clock strays by what a lease would notice


class Clock:
    """That of this machine. Processes that share a SQLite file share it too."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def read(self) -> None:
        """Looks at the database's where the last look was long ago. Who works with leases does so often."""


class DatabaseClock(Clock):
    """The database server's, carried on by this process's monotonic clock from one reading to the next.

    What this machine takes for the time of day does not matter. Late by the way of the answer, never early:
    nobody's lease is over for us before it is for the database.
    """

    def __init__(self, ask: Callable[[], Awaitable[datetime]]) -> None:
        self._ask = ask
        self._read_at: float | None = None
        self._time = datetime.now(UTC)

    def now(self) -> datetime:
        assert self._read_at is not None, "the clock is read when the store is opened"
        return self._time + timedelta(seconds=monotonic() - self._read_at)

    async def read(self) -> None:
        if self._read_at is None or monotonic() - self._read_at > _READ_EVERY:
            time = await self._ask()
            self._time, self._read_at = time.astimezone(UTC), monotonic()
