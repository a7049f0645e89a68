"""Which runs this process executes: those it accepted, and those that nobody holds any more.

A claim is a lease in the store. While it is renewed nobody else touches the run; a process that died, or that
could not renew, loses it to whoever looks next. The same on SQLite and PostgreSQL.
"""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex

from dragoman.errors import DragomanError
from dragoman.run import Run
from dragoman.runs.execution import Execution
from dragoman.runs.family import Family
from dragoman.runs.parts import Parts
from dragoman.telemetry.logs import get_logger

_LEASE = timedelta(seconds=30)
_LOOK_EVERY = 1.0
_RENEW_EVERY = 5.0
_MOST = 200  # runs at work in one process; those that wait for a person do not count


class Dispatch:
    """Owns the tasks of the runs that are executed here."""

    def __init__(self, parts: Parts, most: int = _MOST) -> None:
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}:{token_hex(4)}"
        self._parts = parts
        self._most = most
        self._tasks: asyncio.TaskGroup | None = None
        self._families: dict[str, tuple[Family, asyncio.Task[None]]] = {}
        self._look = asyncio.Event()
        self._renewed = asyncio.get_running_loop().time()

    async def take(self, run: Run) -> None:
        """Begins a run that was just accepted, if it is its turn and there is room."""
        self._parts.streams.ring_thread(run)
        if self._room() <= 0:
            return
        now = datetime.now(UTC)
        claimed = await self._parts.runs.claim_one(run.workspace, run.id, self.worker, now + _LEASE, now)
        if claimed is not None:
            self._start(claimed)

    def cancel(self, root: str) -> bool:
        """Stops a run that is executed here, with all that is under it. False when it is not."""
        held = self._families.get(root)
        if held is None:
            return False
        family, task = held
        family.cancelled = True
        task.cancel()
        return True

    @property
    def held(self) -> frozenset[str]:
        return frozenset(self._families)

    def wake(self) -> None:
        self._look.set()

    async def _keep(self) -> None:
        """Looks for work, renews what is held, hears of wishes to stop. Until it is cancelled."""
        while True:
            try:
                await self._round()
            except DragomanError as error:
                get_logger().warning("runs cannot be looked for", error=error.message)
                self._drop_lost(asyncio.get_running_loop().time())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), _LOOK_EVERY)
            self._look.clear()

    async def _round(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._renewed >= _RENEW_EVERY or not self._families:
            held = await self._parts.runs.renew(self.worker, datetime.now(UTC) + _LEASE)
            self._renewed = loop.time()
            for root in self._families.keys() - held:
                self._abandon(root)
        if self._families:
            for root in await self._parts.runs.cancels(self.worker):
                self.cancel(root)
        if (room := self._room()) > 0:
            now = datetime.now(UTC)
            dead = _dead(await self._parts.runs.workers())
            for run in await self._parts.runs.claim(
                self.worker, now + _LEASE, now, dead=dead, limit=min(room, 50)
            ):
                self._start(run)

    def _start(self, run: Run) -> None:
        if run.id in self._families or self._tasks is None:
            return
        family = Family(run)
        task = self._tasks.create_task(self._execute(run, family), name=f"run {run.id}")
        self._families[run.id] = (family, task)

    async def _execute(self, run: Run, family: Family) -> None:
        parts = self._parts
        try:
            family.number = await parts.runs.last_event(run.workspace, run.id)
            parts.streams.begin(run, family.number == 0)
            if run.cancel_asked:
                family.cancelled = True
            await Execution(run, family, parts).execute()
        except DragomanError as error:
            # The store is away: the lease will be over, and whoever looks then takes the run on.
            get_logger().warning("a run was left", run=run.id, error=error.message)
        except asyncio.CancelledError:
            if not family.cancelled:
                raise
        finally:
            parts.streams.end(family.root)
            self._families.pop(run.id, None)
            self._look.set()

    def _abandon(self, root: str) -> None:
        """Another process has it: nothing more is written about it here."""
        if held := self._families.get(root):
            get_logger().warning("a run was taken over by another process", run=root)
            held[1].cancel()

    def _drop_lost(self, now: float) -> None:
        if now - self._renewed > _LEASE.total_seconds():
            for root in list(self._families):
                self._abandon(root)

    def _room(self) -> int:
        at_work = sum(not family.clock.is_waiting for family, _ in self._families.values())
        return self._most - at_work


def _dead(workers: frozenset[str]) -> list[str]:
    """Workers of this machine whose process is gone: nobody has to wait for their leases."""
    here = socket.gethostname()
    dead: list[str] = []
    for worker in workers:
        host, pid, started, *_ = (*worker.split(":"), "", "", "")
        if host == here and pid.isdigit() and _started(int(pid)) != started:
            dead.append(worker)
    return dead


def _started(pid: int) -> str:
    """When a process began, in the kernel's count; "" when there is none. Tells apart who has the same id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "alive"
    return "alive"


@asynccontextmanager
async def open_dispatch(parts: Parts, most: int = _MOST) -> AsyncGenerator[Dispatch]:
    """Executes while the block runs. At its end runs under way are left to whoever starts next."""
    dispatch = Dispatch(parts, most)
    stopped = asyncio.Event()

    async def keep() -> None:
        async with asyncio.TaskGroup() as tasks:
            dispatch._tasks = tasks  # pyright: ignore[reportPrivateUsage]
            tasks.create_task(dispatch._keep())  # pyright: ignore[reportPrivateUsage]
            await stopped.wait()
            raise asyncio.CancelledError

    keeper = asyncio.ensure_future(keep())
    await asyncio.sleep(0)
    try:
        yield dispatch
    finally:
        stopped.set()
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        with suppress(DragomanError):
            await parts.runs.release(dispatch.worker)
