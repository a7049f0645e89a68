"""Modules that are loaded at first use, beside the loop. Knows nothing of what they are.

By one thread at a time: two that load parts of one library at once may see each other's halves.
"""

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from threading import RLock
from typing import Any, TypeVar

from dragoman import collector

_Made = TypeVar("_Made")
ONE_AT_A_TIME = RLock()


class LateModule:
    """Stands for a library until something of it is used: that loads it, then and there.

    For what most processes never use, or what `ready` or `beside` has loaded by then.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)  # not asked for again
        return found


async def ready(name: str) -> None:
    """Loads it beside the loop where nobody has yet."""
    if name not in sys.modules:
        await beside(lambda: import_module(name))


async def beside(load: Callable[[], _Made]) -> _Made:
    """What `load` returns, which imports what it needs. Others are answered meanwhile."""
    return await asyncio.to_thread(_alone, load)


def _alone(load: Callable[[], _Made]) -> _Made:
    with ONE_AT_A_TIME, collector.paused():
        made = load()
        collector.keep()
        return made
