"""Counts the callers of a connection, so that its owner knows when it is idle and when it may close."""

import asyncio
from collections.abc import Callable

_TIMEOUTS_BEFORE_DOUBT = 2


class ConnectionLeases:
    """Shared by callers and owner of one connection. A leased connection is neither idle nor closed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.leases = 0
        self.last_used = self._loop.time()
        self.is_closing = False
        self.is_suspect = False
        self.timeouts = 0
        self.on_last_release: Callable[[], object] = lambda: None
        self.nudge = asyncio.Event()  # wakes the owner: something happened that it must look at

    def lease(self) -> None:
        """Counts a caller in. Every lease is released by who took it."""
        self.leases += 1

    def release(self) -> None:
        self.leases -= 1
        self.last_used = self._loop.time()
        if self.is_closing and self.leases == 0:
            self.nudge.set()
            self.on_last_release()

    def close(self) -> None:
        """No new calls from now on; those under way finish."""
        self.is_closing = True
        self.nudge.set()

    def suspect(self) -> None:
        """The server may be gone: the owner probes it."""
        self.is_suspect = True
        self.nudge.set()

    def timed_out(self) -> None:
        """One timeout proves nothing; two in a row, or one with nothing else under way, cause a probe."""
        self.timeouts += 1
        if self.is_in_doubt or self.leases <= 1:
            self.suspect()

    def renew(self) -> None:
        """A new session: earlier timeouts no longer count."""
        self.timeouts = 0
        self.is_suspect = False
        self.last_used = self._loop.time()

    def answered(self) -> None:
        self.timeouts = 0

    @property
    def is_in_doubt(self) -> bool:
        return self.timeouts >= _TIMEOUTS_BEFORE_DOUBT
