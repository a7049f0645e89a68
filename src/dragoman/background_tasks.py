"""Tasks beside the work of callers: some are done once, some go on for as long as their owner. None ends
unnoticed: a fault is logged, and what must go on is begun again.

Knows nothing of what they do. Who starts one ends it with its own `async with`. Beside them stands what must
be finished once it was begun, whoever is cancelled.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Self, TypeVar, cast

from dragoman.errors import Internal
from dragoman.telemetry.logs import get_logger

Work = Callable[[], Awaitable[object]]
Method = TypeVar("Method", bound=Callable[..., Any])

_HEARD_WITHIN = 2.0  # seconds until what was cancelled is cancelled again
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 60.0
_LONGEST_VITAL_PAUSE = 2.0  # less than the lease of a run: what can be renewed is
VITAL_PATIENCE = 30.0  # seconds that what is vital may fail again and again before it has ended for good

log = get_logger()


def shielded(method: Method) -> Method:
    """The same method, finished once begun: a cancelled caller waits for its end and then goes.

    A driver that is cancelled in the middle leaves a thread, a lock or half a protocol behind, and who ends
    a process one that nobody waits for.
    """

    @wraps(method)
    async def finished(*args: Any, **kwargs: Any) -> Any:
        work = asyncio.ensure_future(method(*args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    return cast("Method", finished)


class BackgroundTasks:
    """Done once, each. A failing one takes nothing along; leaving cancels what still runs and waits."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        while self._running:  # one that ends may begin another
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)

    def start(self, work: Awaitable[object], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._kept_apart(work, name), name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _kept_apart(self, work: Awaitable[object], name: str) -> None:
        try:
            await work
        except Exception:
            log.exception("background.failed", task=name)


class Supervisor:
    """Watches every task of a process that must go on: the one place that begins it again after a fault.

    Where something vital cannot be brought to go on, the process is of no use any more: `check` raises from
    then on, and who waits for the `failure` ends it.
    """

    def __init__(self) -> None:
        self._is_over = asyncio.Event()
        self._failure: Internal | None = None
        self._left: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """`Internal` once something vital has ended for good."""
        if self._failure is not None:
            raise self._failure

    async def failure(self) -> Internal:
        """Waits for it."""
        await self._is_over.wait()
        assert self._failure is not None
        return self._failure

    @asynccontextmanager
    async def keeping(
        self, work: Work, name: str, *, is_vital: bool = False
    ) -> AsyncGenerator[asyncio.Task[None]]:
        """`work` goes on while the block runs, or until it returns; it is cancelled at the block's end."""
        task = asyncio.get_running_loop().create_task(self._keep(work, name, is_vital), name=name)
        try:
            yield task
        finally:
            self._left.add(task)
            # A library may take it for a timeout of its own: it is said until it is heard.
            while not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=_HEARD_WITHIN)
            self._left.discard(task)

    async def _keep(self, work: Work, name: str, is_vital: bool) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        pause, failing_since = _FIRST_PAUSE, 0.0
        while True:
            began = loop.time()
            try:
                await work()
                return
            except asyncio.CancelledError as error:
                if task.cancelling():
                    if task not in self._left and is_vital:  # somebody else's mistake
                        self._end(name, error)
                    raise
                fault: BaseException = error
            except Exception as error:  # noqa: BLE001
                # boundary: whatever it is, it is said, and the work begun again
                fault = error
            now = loop.time()
            if now - began >= VITAL_PATIENCE or not failing_since:  # it had gone well for long
                pause, failing_since = _FIRST_PAUSE, now
            if is_vital and now - failing_since >= VITAL_PATIENCE:
                self._end(name, fault)
                return
            log.error("background.failed", task=name, again_in=pause, exc_info=fault)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_VITAL_PAUSE if is_vital else _LONGEST_PAUSE)

    def _end(self, name: str, fault: BaseException) -> None:
        log.critical("background.ended", task=name, exc_info=fault)
        self._failure = Internal(
            f"this process cannot go on: {name!r} has ended for good ({type(fault).__name__});"
            " the log has the cause"
        )
        self._is_over.set()
