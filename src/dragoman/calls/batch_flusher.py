"""When what was noted in memory is written: once a second, sooner when there is plenty, at last on closing.

Knows nothing of what is written: who notes says so, who writes gives the writing.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

_EVERY = 1.0
_PLENTY = 500
_LAST_WORDS = 3.0  # seconds that closing may take


class BatchFlusher:
    """`flush` writes what there is; `has_more` says whether something is left or came meanwhile."""

    def __init__(self, flush: Callable[[], Awaitable[None]], has_more: Callable[[], bool]) -> None:
        self._flush = flush
        self._has_more = has_more
        self._something = asyncio.Event()
        self._plenty = asyncio.Event()
        self._closing = asyncio.Event()

    def noted(self, waiting: int) -> None:
        """One more waits, so that there are `waiting` now."""
        if waiting == 1:
            self._something.set()
        elif waiting == _PLENTY:
            self._plenty.set()

    def wake(self) -> None:
        self._something.set()

    def begin(self) -> None:
        """A flush takes all there is: what comes from now on is news again."""
        self._something.clear()
        self._plenty.clear()

    async def keep(self) -> None:
        """Until `close`; the last batch is written then."""
        while not self._closing.is_set():
            await self._something.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._plenty.wait(), _EVERY)
            await self._flush()
            if self._has_more():
                # The store failed, or calls ended while it wrote: they wait no longer than others.
                self._something.set()
        await self._flush()

    def close(self) -> None:
        self._closing.set()
        self._something.set()
        self._plenty.set()


@asynccontextmanager
async def kept(rhythm: BatchFlusher) -> AsyncGenerator[None]:
    """Writes while the block runs, and writes the rest within a bound at its end."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(rhythm.keep())
        try:
            yield
        except Exception as error:  # noqa: BLE001
            # boundary: a task group would wrap the error of the block, which is not its own
            failure = error
        finally:
            rhythm.close()
            await asyncio.wait([writer], timeout=_LAST_WORDS)
            writer.cancel()
    if failure is not None:
        raise failure
