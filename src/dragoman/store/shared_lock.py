"""A lock across processes: a row in the store that one holder has at a time.

The lock expires should its holder die, so what is done under it must take less time than that.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from secrets import token_hex

from dragoman.errors import StoreUnavailable
from dragoman.store.clock import Clock
from dragoman.store.protocols import UsageStore
from dragoman.store.records import ConcurrencyLease, TakenUsage

_LONGEST = 30.0
_FIRST_LOOK, _SLOWEST_LOOK = 0.02, 0.25


class SharedLock:
    def __init__(self, rows: UsageStore, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock

    @asynccontextmanager
    async def turn(self, workspace: str, subject: str) -> AsyncGenerator[None]:
        """Waits for the lock, at most until it expires."""
        lease = await self._taken(workspace, subject)
        try:
            yield
        finally:
            await self._rows.settle([], [lease])

    async def _taken(self, workspace: str, subject: str) -> ConcurrencyLease:
        pause, name = _FIRST_LOOK, token_hex(8)
        try:
            async with asyncio.timeout(_LONGEST + 1.0):
                while True:
                    await self._clock.read()
                    now = self._clock.now()
                    until = now + timedelta(seconds=_LONGEST)
                    lease = ConcurrencyLease(
                        id=name, workspace=workspace, subject=subject, limit=1, expires_at=until
                    )
                    if isinstance(await self._rows.take([], [lease], now), TakenUsage):
                        return lease
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _SLOWEST_LOOK)
        except TimeoutError:
            raise StoreUnavailable(f"another process does not finish with {subject!r}") from None
