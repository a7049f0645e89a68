"""Holds boxed programs to what they may use together: memory, processor time, processes, disk of their home.

One look at the process table serves all boxes; after it only their processes are looked at, and what has
started since. Files that were removed while they are open count as well. What is over a limit is killed
whole, and its cause is said.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from stat import S_ISREG
from threading import Thread
from typing import Protocol

from dragoman.connections.boxes.homes import BLOCK, disk_used
from dragoman.connector import BoxLimits
from dragoman.errors import InvalidConfig

_MEGABYTE = 1024 * 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK = 1.0
_LOOK_CLOSELY = 0.1
_CLOSE = 0.5  # of a limit: from here on a second may be too long
_NEW_ON_DISK = 32 * _MEGABYTE
_MANY_NEW = 1000  # so many that the whole table is read as quickly
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)  # or somebody else's
_NEW_IN_MEMORY = 32 * _MEGABYTE
_THREADS_EACH = 32  # of as many processes as it may have
_REST_OF_DISK = 10  # looking through a home takes at most a tenth of the time


@dataclass(frozen=True, slots=True)
class LimitEnd:
    """Why a program was ended, and the limit that it was ended by."""

    cause: str
    limit: str


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
    family: list[int] = field(default_factory=list[int])  # its processes, where they are known
    free: int = 0
    looks_again: float = 0.0
    shared: int = 0  # of the machine, when its open files were looked at
    held: int = 0  # memory in open files without a name
    used: float = 0.0  # of the limit that is nearest


@dataclass(frozen=True, slots=True)
class _Row:
    parent: int
    resident: int
    seconds: float
    group: int = 0
    threads: int = 1


@dataclass(frozen=True, slots=True)
class _Machine:
    """What all of its processes have together; `newest` is the number given last to one, or to a thread."""

    newest: int
    threads: int
    shared: int


class BoxWatchdog:
    def __init__(self) -> None:
        self._by_pid: dict[int, _Watched] = {}
        self._some = asyncio.Event()
        self._newest: int | None = None
        self._machine = _Machine(0, 0, 0)
        self._full: set[Path] = set()

    async def check_room(self, slug: str, home: Path, limits: BoxLimits) -> None:
        """`InvalidConfig` for a home that is as full as when its program was ended for it: else every start
        would have a second to fill it further.
        """
        if home not in self._full:
            return
        used = await asyncio.to_thread(disk_used, home.parent)
        if used > limits.disk * _MEGABYTE:
            raise InvalidConfig(
                f"its home has {used // _MEGABYTE} MB of {limits.disk} MB (limits.disk)",
                hint=f"dragoman connectors homes {slug} --clear --yes, or if it may have more: "
                f"dragoman connectors update {slug} --limit disk=…",
            )
        self._full.discard(home)

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
            for one, why in await asyncio.to_thread(self._over_limits, watched):
                if self._by_pid.get(one.process.pid) is one and one.process.ended_by is None:
                    one.process.ended_by = why
                    if why.limit == "disk":
                        self._full.add(one.home)
                    one.process.kill()
                    if one.find_first is not None and one.first is not None:
                        with suppress(OSError):
                            os.kill(one.first, signal.SIGKILL)

    def _over_limits(self, watched: Sequence[_Watched]) -> list[tuple[_Watched, LimitEnd]]:
        try:
            rows = self._look(watched)
        except OSError:  # no file can be opened now: what is known may be too little
            self._newest = None
            return []
        found: list[tuple[_Watched, LimitEnd]] = []
        for one in watched:
            one.family = [pid for pid in one.family if pid in rows]
            if why := _over(one, one.family, [rows[pid] for pid in one.family], self._machine.shared):
                found.append((one, why))
        return found

    def _look(self, watched: Sequence[_Watched]) -> dict[int, _Row]:
        """At all processes of theirs; who they are is known after the first look."""
        self._machine = _machine()  # before the look: who starts during it comes next
        last, self._newest = self._newest, self._machine.newest
        is_whole = any(
            one.limits.cpu is not None or self._machine.threads > _most_threads(one.limits) for one in watched
        )
        if not all(one.family for one in watched) or not _tells_of_starts():
            last = None
        if last is not None and 0 <= self._newest - last < _MANY_NEW:
            _join_families(watched, _rows(range(last + 1, self._newest + 1), _row_of_process))
            return _rows((pid for one in watched for pid in one.family), _row if is_whole else _size)
        rows = _rows((int(one.name) for one in os.scandir("/proc") if one.name.isdigit()), _row)
        _find_families(watched, rows)
        return rows


def _find_families(watched: Sequence[_Watched], rows: Mapping[int, _Row]) -> None:
    below: dict[int, list[int]] = {}
    for pid, row in rows.items():
        below.setdefault(row.parent, []).append(pid)
    for one in watched:
        if one.first is None and one.find_first is not None:
            one.first = one.find_first()
        one.family = [] if one.first is None else _family(one.first, below)
        if one.find_first is None:  # what was left by its parent is still in the group
            members = {pid for pid, row in rows.items() if row.group == one.first}
            one.family += sorted(members.difference(one.family))


def _join_families(watched: Sequence[_Watched], new: Mapping[int, _Row]) -> None:
    """Numbers grow, so that a parent comes before its children; where they begin anew all is looked at."""
    if new:
        family_of = {pid: one.family for one in watched for pid in one.family}
        group_of = {one.first: one.family for one in watched if one.find_first is None}
        for pid, row in new.items():
            if (family := family_of.get(row.parent, group_of.get(row.group))) is not None:
                family.append(pid)
                family_of[pid] = family


def _over(one: _Watched, pids: list[int], rows: list[_Row], shared: int) -> LimitEnd | None:
    limits = one.limits
    most = limits.memory * _MEGABYTE
    _look_at_held(one, pids, shared)
    memory = sum(row.resident for row in rows) + one.held
    one.used = max(memory / most, len(rows) / (limits.processes + one.waits))
    # Pages that several of them share were counted for each: only who is over by that is looked at closely.
    if memory > most:
        memory = _memory(one, zip(pids, rows, strict=True))
        if memory > most:
            return _ended("memory", f"used {memory // _MEGABYTE} MB of {limits.memory} MB")
    if (count := len(rows) - one.waits) > limits.processes:
        return _ended("processes", f"had {count} processes of {limits.processes}")
    if (count := sum(row.threads for row in rows)) > _most_threads(limits):
        return _ended("processes", f"had {count} threads, as many as {limits.processes} processes may have")
    if limits.cpu is not None and (seconds := sum(row.seconds for row in rows)) > limits.cpu:
        return _ended("cpu", f"used {seconds:.1f} s of {limits.cpu:g} s of processor time")
    if limits.cpu is not None:
        one.used = max(one.used, sum(row.seconds for row in rows) / limits.cpu)
    return _over_disk(one, pids)


def _most_threads(limits: BoxLimits) -> int:
    return limits.processes * _THREADS_EACH


def _look_at_held(one: _Watched, pids: Iterable[int], shared: int) -> None:
    """Looks at their open files only when the machine has more memory in files, by whomever."""
    if one.held or shared - one.shared > min(_NEW_IN_MEMORY, one.limits.memory * _MEGABYTE // 8):
        one.held = sum(_unnamed(pids, lambda device: device != _device(one.home)))
        one.shared = shared
    one.shared = min(one.shared, shared)


def _memory(one: _Watched, processes: Iterable[tuple[int, _Row]]) -> int:
    """Each page once; what lies in files without a name may be mapped, too."""
    alone, shared = 0, 0
    for pid, row in processes:
        parts = _proportional(pid)
        alone += row.resident if parts is None else parts[0] - parts[1]
        shared += 0 if parts is None else parts[1]
    return alone + max(shared, one.held)


def _unnamed(pids: Iterable[int], counts: Callable[[int], bool]) -> Iterable[int]:
    """Bytes of each file that they hold open and that was removed, on the devices that count."""
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    state = entry.stat()
                    file = (state.st_dev, state.st_ino)
                    if not state.st_nlink and S_ISREG(state.st_mode) and file not in seen and counts(file[0]):
                        seen.add(file)
                        yield state.st_blocks * 512


def _device(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_dev
    return 0


def _ended(limit: str, why: str) -> LimitEnd:
    return LimitEnd(f"killed: {why} (limits.{limit})", limit)


def _over_disk(one: _Watched, pids: Iterable[int]) -> LimitEnd | None:
    """Looks through the home only when the disk has become fuller, by whomever."""
    now = time.monotonic()
    try:
        state = os.statvfs(one.home)
    except OSError:
        return None
    free = state.f_bavail * state.f_frsize + state.f_favail * BLOCK
    most = one.limits.disk * _MEGABYTE
    if now < one.looks_again or (one.free and one.free - free < min(_NEW_ON_DISK, most // 8)):
        return None
    used = disk_used(one.home.parent) + sum(_unnamed(pids, lambda device: device == _device(one.home)))
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


def _machine() -> _Machine:
    words = _read("/proc/loadavg").split()
    memory = _read("/proc/meminfo", 4096)
    at = memory.find(b"\nShmem:")
    shared = int(memory[at + 7 :].split(None, 1)[0]) * 1024 if at >= 0 else 0
    return _Machine(int(words[-1]), int(words[-2].rpartition(b"/")[2]), shared)


@cache
def _tells_of_starts() -> bool:
    """Whether numbers grow as they are given here: a `/proc/loadavg` that a container makes itself says so
    late, or never.
    """
    before = _machine().newest
    thread = Thread(target=_machine)
    thread.start()
    thread.join()
    return _machine().newest != before


def _rows(pids: Iterable[int], row: Callable[[int], _Row]) -> dict[int, _Row]:
    table: dict[int, _Row] = {}
    for pid in pids:
        with suppress(*_GONE, IndexError, ValueError):
            table[pid] = row(pid)
    return table


def _row(pid: int) -> _Row:
    words = _facts(pid)
    # Its own time, and that of children it has waited for.
    seconds = sum(map(int, words[11:15])) / _TICKS
    return _Row(int(words[1]), int(words[21]) * _PAGE, seconds, int(words[2]), int(words[17]))


def _row_of_process(pid: int) -> _Row:
    """Threads have numbers, too, by which they are found but not listed: nobody is told of their end."""
    words = _facts(pid)
    if words[35] == b"-1":
        raise ValueError("a thread")
    return _Row(int(words[1]), 0, 0.0, int(words[2]))


def _facts(pid: int) -> list[bytes]:
    """What follows the name, in `/proc/<pid>/stat`."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _size(pid: int) -> _Row:
    """Of it alone: this costs half."""
    return _Row(0, int(_read(f"/proc/{pid}/statm").split(b" ", 2)[1]) * _PAGE, 0.0)


def _read(path: str, most: int = 1024) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, most)
    finally:
        os.close(file)


def _proportional(pid: int) -> tuple[int, int] | None:
    """Its part of all pages, and of those that are in files of memory; None where it lets nobody look."""
    parts: dict[str, int] = {}
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in ("Pss", "Pss_Shmem"):
                parts[name] = int(rest.split()[0]) * 1024
    return (parts["Pss"], parts.get("Pss_Shmem", 0)) if "Pss" in parts else None
