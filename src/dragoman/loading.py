"""Modules that are loaded at first use, beside the loop. Knows nothing of what they are.

By one thread at a time: two that load parts of one library at once may see each other's halves.
"""

import asyncio
import gc
from collections.abc import Callable
from threading import RLock
from typing import TypeVar

_Made = TypeVar("_Made")
ONE_AT_A_TIME = RLock()


async def beside(load: Callable[[], _Made]) -> _Made:
    """What `load` returns, which imports what it needs. Others are answered meanwhile."""
    return await asyncio.to_thread(_alone, load)


def _alone(load: Callable[[], _Made]) -> _Made:
    with ONE_AT_A_TIME:
        made = load()
        if gc.get_freeze_count():
            gc.freeze()  # a process that lets the collector pass over its modules does so with these, too
        return made
