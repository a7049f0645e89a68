"""Streams that stand open, at whichever door of a service: each user may have so many of them."""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from dragoman.errors import LimitReached
from dragoman.scope import Caller

STREAMS = "dragoman.streams"  # where a door leaves them in a request's scope


class StandingStreams:
    """`stopping`: the service ends, and they with it."""

    def __init__(self, most_per_user: int) -> None:
        self.stopping = asyncio.Event()
        self._most = most_per_user
        self._open: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def one_of(self, caller: Caller) -> Generator[None]:
        """While the block runs, the caller has one more."""
        holder = (caller.workspace, caller.user)
        if self._open[holder] >= self._most:
            raise LimitReached(
                f"too many open streams: one user may have {self._most}",
                hint="close one; an operator sets the limit with DRAGOMAN_MAX_STREAMS_PER_USER",
            )
        self._open[holder] += 1
        try:
            yield
        finally:
            self._open[holder] -= 1
            if not self._open[holder]:
                del self._open[holder]
