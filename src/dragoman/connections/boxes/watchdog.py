"""Holds boxed programs to what they may use together: memory, processor time, processes, disk of their home.

One look at the process table serves all boxes. What is over a limit is killed whole, and its cause is said.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoman.connections.boxes.homes import disk_used
from dragoman.connector import BoxLimits

_MEGABYTE = 1024 * 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK = 1.0
_LOOK_CLOSELY = 0.1
_CLOSE = 0.5  # of a limit: from here on a second may be too long
_NEW_ON_DISK = 32 * _MEGABYTE
_REST_OF_DISK = 10  # looking through a home takes at most a tenth of the time


@dataclass(frozen=True, slots=True)
class LimitEnd:
    """Why a program was ended, and the setting that it was ended by."""

    cause: str
    setting: str


class LimitedProcess(Protocol):
    """What the watchdog knows of a server: the first of its processes, and how to end all of them."""

    ended_by: LimitEnd | None

    @property
    def mark(self) -> str: ...

    @property
    def pid(self) -> int: ...

    def kill(self) -> None: ...


@dataclass(slots=True)
class _Watched:
    process: LimitedProcess
    limits: BoxLimits
    home: Path
    waits: int  # processes that are the box's own
    find_first: Callable[[], int | None] | None  # where its processes are not below the one that was started
    first: int | None
    free: int = 0
    looks_again: float = 0.0
    used: float = 0.0  # of the limit that is nearest


@dataclass(frozen=True, slots=True)
class _Row:
    parent: int
    resident: int
    seconds: float


class BoxWatchdog:
    def __init__(self) -> None:
        self._by_pid: dict[int, _Watched] = {}
        self._some = asyncio.Event()

    @contextmanager
    def watching(
        self,
        process: LimitedProcess,
        limits: BoxLimits,
        home: Path,
        waits: int,
        find_first: Callable[[], int | None] | None = None,
    ) -> Generator[None]:
        """While the block runs, the process and what it started are held to the limits."""
        first = None if find_first else process.pid
        self._by_pid[process.pid] = _Watched(process, limits, home, waits, find_first, first)
        self._some.set()
        try:
            yield
        finally:
            del self._by_pid[process.pid]
            if not self._by_pid:
                self._some.clear()

    async def watch(self) -> None:
        """For as long as there are programs to watch, and then until there are."""
        while True:
            await self._some.wait()
            is_close = any(one.used > _CLOSE for one in self._by_pid.values())
            await asyncio.sleep(_LOOK_CLOSELY if is_close else _LOOK)
            watched = [*self._by_pid.values()]
            for one, why in await asyncio.to_thread(_over_limits, watched):
                if self._by_pid.get(one.process.pid) is one and one.process.ended_by is None:
                    one.process.ended_by = why
                    one.process.kill()
                    if one.find_first is not None and one.first is not None:
                        with suppress(OSError):
                            os.kill(one.first, signal.SIGKILL)


def _over_limits(watched: Iterable[_Watched]) -> list[tuple[_Watched, LimitEnd]]:
    rows = _process_table()
    below: dict[int, list[int]] = {}
    for pid, row in rows.items():
        below.setdefault(row.parent, []).append(pid)
    found: list[tuple[_Watched, LimitEnd]] = []
    for one in watched:
        if one.first is None and one.find_first is not None:
            one.first = one.find_first()
        pids = _family(one.first, below) if one.first is not None else []
        if why := _over(one, pids, [rows[pid] for pid in pids if pid in rows]):
            found.append((one, why))
    return found


def _over(one: _Watched, pids: list[int], rows: list[_Row]) -> LimitEnd | None:
    limits = one.limits
    memory = sum(row.resident for row in rows)
    one.used = max(memory / (limits.memory * _MEGABYTE), len(rows) / (limits.processes + one.waits))
    # Pages that several of them share were counted for each: only who is over by that is looked at closely.
    if one.used > 1 and memory > limits.memory * _MEGABYTE:
        memory = sum(map(_proportional, pids))
        if memory > limits.memory * _MEGABYTE:
            return _ended("memory", f"used {memory // _MEGABYTE} MB of {limits.memory} MB")
    if (count := len(rows) - one.waits) > limits.processes:
        return _ended("processes", f"had {count} processes of {limits.processes}")
    if limits.cpu is not None and (seconds := sum(row.seconds for row in rows)) > limits.cpu:
        return _ended("cpu", f"used {seconds:.1f} s of {limits.cpu:g} s of processor time")
    if limits.cpu is not None:
        one.used = max(one.used, sum(row.seconds for row in rows) / limits.cpu)
    return _over_disk(one)


def _ended(limit: str, why: str) -> LimitEnd:
    return LimitEnd(f"killed: {why} (limits.{limit})", f"--limit {limit}=")


def _over_disk(one: _Watched) -> LimitEnd | None:
    """Looks through the home only when the disk has become fuller, by whomever."""
    now = time.monotonic()
    try:
        state = os.statvfs(one.home)
    except OSError:
        return None
    free = state.f_bavail * state.f_frsize
    most = one.limits.disk * _MEGABYTE
    if now < one.looks_again or (one.free and one.free - free < min(_NEW_ON_DISK, most // 8)):
        return None
    used = disk_used(one.home.parent)
    one.free = free
    one.looks_again = now + _REST_OF_DISK * (time.monotonic() - now)
    if used <= most:
        return None
    return _ended("disk", f"its home has {used // _MEGABYTE} MB of {one.limits.disk} MB")


def _family(pid: int, below: dict[int, list[int]]) -> list[int]:
    found = [pid]
    for one in found:
        found += below.get(one, [])
    return found


def _process_table() -> dict[int, _Row]:
    table: dict[int, _Row] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                table[int(entry.name)] = _row(entry.name)
    return table


def _row(pid: str) -> _Row:
    file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    try:
        words = os.read(file, 1024).rpartition(b")")[2].split()
    finally:
        os.close(file)
    # Its own time, and that of children it has waited for.
    return _Row(int(words[1]), int(words[21]) * _PAGE, sum(map(int, words[11:15])) / _TICKS)


def _proportional(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
