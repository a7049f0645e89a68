"""How long the event loop is held: processor time of its thread between two turns of a short wait."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class LoopWatch:
    """The longest that the loop was held, in seconds of processor time."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            since = time.thread_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.thread_time() - since)


@asynccontextmanager
async def watched() -> AsyncGenerator[LoopWatch]:
    watch = LoopWatch()
    watching = asyncio.ensure_future(watch.watch())
    await asyncio.sleep(0.01)
    watch.longest = 0.0
    try:
        yield watch
    finally:
        watching.cancel()
