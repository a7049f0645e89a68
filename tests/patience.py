"""How long tests wait. Every deadline of a test, and every claim about duration, goes through here.

A busy machine sets `TEST_PATIENCE` (CI: 3). What must happen then has three times as long; where a claim
compares with a pause ("sooner than the backoff"), that pause is made longer by the same factor, so that no
claim proves less.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable

PATIENCE = float(os.environ.get("TEST_PATIENCE") or 1)


def patient(seconds: float) -> float:
    return seconds * PATIENCE


def deadline(seconds: float) -> asyncio.Timeout:
    """`asyncio.timeout` that a busy machine may stretch."""
    return asyncio.timeout(patient(seconds))


async def until(holds: Callable[[], bool | Awaitable[bool]], within: float = 10.0) -> None:
    """Waits for a fact about another process or task, of which no event tells us."""
    async with deadline(within):
        while True:
            answer = holds()
            if await answer if inspect.isawaitable(answer) else answer:
                return
            await asyncio.sleep(0.01)


async def give_time(seconds: float) -> None:
    """Long enough for what must not happen, if it did: the window in which a test looks for nothing."""
    await asyncio.sleep(patient(seconds))


def wait_until(holds: Callable[[], bool], within: float = 10.0) -> None:
    """The same for tests without an event loop."""
    limit = time.monotonic() + patient(within)
    while not holds():
        assert time.monotonic() < limit, f"it did not become true within {patient(within):g} s"
        time.sleep(0.01)
