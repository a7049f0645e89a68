"""A server's process: spawned in a group of its own, watched, and reaped with all its descendants.

Descendants that left the group are found by a variable that every one of them inherited. Who spawns
the process closes it; `close` has a time limit and ends with SIGKILL.
"""

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import cast

from dragoman.background_tasks import shielded
from dragoman.connections.boxes.box import MARK, Box, Launch
from dragoman.connections.boxes.watchdog import LimitEnd
from dragoman.connections.start_failures import ErrorLines
from dragoman.errors import InvalidConfig, Unreachable

_STDERR_LINES = 200
_STDERR_LINE = 2_000
_STDERR_REST = 0.005  # seconds between turns of one that writes all the time
_LINES_PER_TURN = 64
_GRACE_AFTER_EOF = 0.7
_GRACE_AFTER_TERM = 1.3
_GRACE_AFTER_KILL = 2.0
# Why a program cannot be started that is not as the connector says; of all else the machine is the cause.
_CONFIGURED = frozenset(
    {
        *(errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENOEXEC),
        *(errno.ELOOP, errno.ENAMETOOLONG, errno.E2BIG, errno.EISDIR, errno.EINVAL),
    }
)
_GRACE_OF_INSTALLS = 5.0  # what writes into a cache of packages has more time to leave it whole


class ServerProcess:
    """One child. `on_line` gets each line of its stdout; `on_end` is told once that no more will come."""

    def __init__(
        self, popen: subprocess.Popen[bytes], mark: str, box: Box | None = None, first: bytes = b""
    ) -> None:
        self._popen = popen
        self.mark = mark
        self._first = first
        self._box = box
        self.ended_by: LimitEnd | None = None
        self._exited = asyncio.Event()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._errors = ErrorLines()
        self._writer: asyncio.WriteTransport | None = None
        self._readers: list[asyncio.ReadTransport] = []
        self._output: _Lines | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._pidfd: int | None = None
        self.input_ended = asyncio.Event()
        self.output_ended = asyncio.Event()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def stderr(self) -> tuple[str, ...]:
        return tuple(self._stderr)

    @property
    def first_error(self) -> str | None:
        """The line of its stderr that says what went wrong, however much came after it."""
        return self._errors.first

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal, which who waits for a boxed program tells as 128 and more."""
        code = self._popen.returncode
        is_told = self._has_init and code is not None and 128 < code < 128 + signal.NSIG
        return 128 - code if is_told and code is not None else code

    @property
    def _has_init(self) -> bool:
        """Whether what was started waits for the server, and ends by its end."""
        return self._box is not None and self._box.waits > 0

    @property
    def exited(self) -> asyncio.Event:
        return self._exited

    async def start(
        self, on_line: Callable[[bytes], None], limit: int, on_oversize: Callable[[], None]
    ) -> None:
        """Connects the pipes to the event loop. Each is kept at once: a cancelled start is closed whole."""
        loop = asyncio.get_running_loop()
        popen = self._popen
        assert popen.stdin
        assert popen.stdout
        assert popen.stderr
        self._watch_exit(loop)
        out, self._output = await loop.connect_read_pipe(
            lambda: _Lines(on_line, self.output_ended.set, limit, on_oversize), popen.stdout
        )
        self._readers.append(out)
        err, _ = await loop.connect_read_pipe(
            lambda: _Lines(
                self._keep_stderr, lambda: None, _STDERR_LINE * 4, lambda: None, rest=_STDERR_REST
            ),
            popen.stderr,
        )
        self._readers.append(err)
        self._writer, _ = await loop.connect_write_pipe(
            lambda: _Input(self._may_write, self.input_ended.set), popen.stdin
        )
        if self._first:
            self._writer.write(self._first)

    def stop_reading(self) -> None:
        """Nobody wants its output any more: it fills its pipe, not our time."""
        if self._output is not None:
            self._output.stop()

    def write(self, data: bytes) -> None:
        """Hands bytes to the pipe without waiting. `BrokenPipeError` once nobody reads any more."""
        if self._writer is None or self._writer.is_closing():
            raise BrokenPipeError("the server closed its input")
        self._writer.write(data)

    async def drain(self) -> None:
        """Waits while the server does not read what it was sent."""
        await self._may_write.wait()

    async def close(self, *, may_install: bool = False) -> None:
        """Ends the process and all that it started: end of input, then SIGTERM, then SIGKILL."""
        try:
            if self._writer is not None and not self._writer.is_closing():
                self._writer.abort() if self._writer.get_write_buffer_size() else self._writer.close()
            if not await self._exits_within(_GRACE_AFTER_EOF):
                self._terminate()
                await self._exits_within(_GRACE_OF_INSTALLS if may_install else _GRACE_AFTER_TERM)
        finally:
            await self._end()

    @shielded
    async def _end(self) -> None:
        """Whoever closes it may be cancelled again by now: nothing of it is left all the same."""
        self._signal_group(signal.SIGKILL)
        try:
            for pid in await _marked(self.mark):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            await self._exits_within(_GRACE_AFTER_KILL)
            if self._box is not None and self._box.outlives_kills and await _marked(self.mark):
                await self._box.end_rest(self.mark)
        finally:
            self._release()

    def kill(self) -> None:
        """SIGKILL to all of its group, now. It must be closed all the same."""
        self._signal_group(signal.SIGKILL)

    def _terminate(self) -> None:
        """SIGTERM to the server. Bubblewrap must not get it: all would be killed with it. The client of a
        container passes it on.
        """
        is_wrapped = self._box is not None and self._box.mode == "bubblewrap"
        pids = _below(self._popen.pid, 2) if is_wrapped else []
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
        if not pids:
            self._signal_group(signal.SIGTERM)

    def _signal_group(self, number: signal.Signals) -> None:
        # The group outlives its leader while a grandchild is in it; an empty group is no error.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    async def _exits_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        return self._exited.is_set()

    def _watch_exit(self, loop: asyncio.AbstractEventLoop) -> None:
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self._popen.pid)
            loop.add_reader(self._pidfd, self._reap)
        else:
            loop.run_in_executor(None, self._popen.wait).add_done_callback(lambda _: self._exited.set())

    def _reap(self) -> None:
        if self._popen.poll() is not None:
            self._exited.set()
            self._forget_pidfd()

    def _forget_pidfd(self) -> None:
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _release(self) -> None:
        for reader in self._readers:
            if not reader.is_closing():
                reader.close()
        if self._writer is not None and not self._writer.is_closing():
            self._writer.abort()
        self._forget_pidfd()
        self._popen.poll()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _keep_stderr(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            self._stderr.append(text[:_STDERR_LINE])
            self._errors.take(text[:_STDERR_LINE])


def spawn(
    command: str,
    args: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    box: Box | None = None,
    channel: int | None = None,
) -> ServerProcess:
    """Starts a server in a new session, in its box. `InvalidConfig` when there is no such program or
    directory, `Unreachable` when the machine cannot start one now. `channel` is closed here.

    It does not await: a fork that a cancellation could abandon would be a process that nobody reaps.
    """
    program = find_program(command, env, cwd)
    mark = token_hex(8)
    env = {**env, MARK: mark}
    launch = (
        Launch((program, *args), env, cwd)
        if box is None
        else box.launch(program, args, env, cwd, mark=mark, channel=channel)
    )
    try:
        popen = subprocess.Popen(  # noqa: S603 - no shell; the command is what the connector says
            launch.words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**launch.env, MARK: mark},
            cwd=launch.cwd,
            start_new_session=True,
            pass_fds=launch.descriptors,
            bufsize=0,
        )
    except OSError as error:
        said = f"{command!r} could not be started: {error.strerror or error}"
        if error.errno in _CONFIGURED:
            raise InvalidConfig(said, hint="check that the file exists and may be executed") from None
        raise Unreachable(said, hint="the machine lacks something: it is tried again") from None
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    return ServerProcess(popen, mark, box, launch.first)


def find_program(command: str, env: Mapping[str, str], cwd: str | None) -> str:
    """Where the program of a command is, or `InvalidConfig` that says what to install."""
    if cwd is not None and not Path(cwd).is_dir():
        raise InvalidConfig(f"the working directory {cwd!r} does not exist", hint="create it or change cwd")
    program = shutil.which(command, path=env.get("PATH")) or (command if os.sep in command else None)
    if program is None:
        raise InvalidConfig(
            f"there is no program {command!r} on the PATH",
            hint=_install_hint(command),
        )
    return program


def _below(pid: int, levels: int) -> list[int]:
    """The processes that are so many levels under one."""
    pids = [pid]
    for _ in range(levels):
        pids = [child for one in pids for child in _children(one)]
    return pids


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _install_hint(command: str) -> str:
    known = {
        "uvx": "install uv: pip install uv",
        "uv": "install uv: pip install uv",
        "npx": "install Node.js, which brings npx",
        "node": "install Node.js",
        "docker": "install Docker",
    }
    return known.get(command, "check the spelling, or give the full path")


async def _marked(mark: str) -> list[int]:
    """Every process on this machine that carries our mark in its environment (Linux)."""
    if not sys.platform.startswith("linux"):
        return []
    return await asyncio.to_thread(_scan, f"{MARK}={mark}".encode())


def _scan(needle: bytes) -> list[int]:
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if needle in Path(f"/proc/{entry.name}/environ").read_bytes():
                    found.append(int(entry.name))
    return found


class _Lines(asyncio.Protocol):
    """Cuts a stream into lines in linear time, however long they are, and passes on a few in each turn.

    While there are more, nothing is read and everybody else has a turn; `rest` seconds lie between two.
    """

    def __init__(
        self,
        on_line: Callable[[bytes], None],
        on_end: Callable[[], None],
        limit: int,
        on_oversize: Callable[[], None],
        *,
        rest: float = 0.0,
    ) -> None:
        self._on_line = on_line
        self._on_end = on_end
        self._limit = limit
        self._on_oversize = on_oversize
        self._rest = rest
        self._parts: list[bytes] = []
        self._size = 0
        self._data = b""
        self._start = 0
        self._transport: asyncio.ReadTransport | None = None
        self._is_stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._data, self._start = data, 0
        self._take_turn()

    def stop(self) -> None:
        self._is_stopped = True
        self._data = b""
        self._forget()
        if self._transport is not None:
            self._transport.pause_reading()

    def _take_turn(self) -> None:
        assert self._transport is not None
        for _ in range(_LINES_PER_TURN):
            if self._is_stopped:
                return
            if (end := self._data.find(b"\n", self._start)) < 0:
                self._keep(self._data[self._start :] if self._start else self._data)
                self._data = b""
                if not self._is_stopped:
                    self._transport.resume_reading()
                return
            piece = self._data[self._start : end]
            self._start = end + 1
            if self._parts:
                self._parts.append(piece)
                piece = b"".join(self._parts)
                self._forget()
            self._on_line(piece)
        self._transport.pause_reading()
        asyncio.get_running_loop().call_later(self._rest, self._take_turn)

    def _keep(self, rest: bytes) -> None:
        self._size += len(rest)
        if self._size > self._limit:
            self._forget()
            self._on_oversize()
        elif rest:
            self._parts.append(rest)

    def _forget(self) -> None:
        self._parts.clear()
        self._size = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class _Input(asyncio.BaseProtocol):
    """The flow control of the server's stdin. `on_end` is told when nobody reads it any more."""

    def __init__(self, may_write: asyncio.Event, on_end: Callable[[], None]) -> None:
        self._may_write = may_write
        self._on_end = on_end

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._may_write.set()
        self._on_end()
