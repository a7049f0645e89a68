"""Tasks that live as long as the hub and end with it. A failing one is logged and takes nothing along."""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Self

from dragoman.telemetry.logs import get_logger

log = get_logger()


class BackgroundTasks:
    """Owned by the hub's `async with`; leaving cancels what still runs and waits for it."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._running:
            task.cancel()
        await self._stack.aclose()

    def start(self, work: Awaitable[object], name: str) -> None:
        task = self._tasks.create_task(self._kept_apart(work, name), name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _kept_apart(self, work: Awaitable[object], name: str) -> None:
        try:
            await work
        except Exception:
            log.exception("background.failed", task=name)
