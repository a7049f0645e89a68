"""`terminal`: a shell command inside an operating-system sandbox, or not at all.

The command sees one writable directory and nothing else of the host. When its time is up, or when nobody
waits for it any more, its whole process namespace is killed; no child of a child survives.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dragoman.connections.native.confined_directory import check_root
from dragoman.connections.native.functions import FunctionTool
from dragoman.connections.native.sandbox import CommandSandbox, get_sandbox
from dragoman.connections.native.source import NativeTool
from dragoman.errors import ToolFailed
from dragoman.tool import Annotations

_ANYTHING = Annotations(read_only=False, destructive=True, idempotent=False, open_world=False)
_MOST_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalLimits:
    """How long a command may take and how much of its output is kept, in bytes of each stream."""

    seconds: float = 60.0
    output_bytes: int = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    exit_code: int
    stdout: str
    stderr: str
    truncated: bool


def terminal_tool(
    root: Path,
    *,
    sandbox: CommandSandbox | None = None,
    limits: TerminalLimits = TerminalLimits(),  # noqa: B008  frozen
) -> NativeTool:
    """The terminal over one directory, once a command ran in the sandbox. Raises `InvalidConfig`."""
    place = check_root(root)
    terminal = TerminalTool(place, sandbox or get_sandbox(), limits)
    return FunctionTool(terminal.terminal, annotations=_ANYTHING)


class TerminalTool:
    def __init__(self, root: Path, sandbox: CommandSandbox, limits: TerminalLimits) -> None:
        self._root = root
        self._sandbox = sandbox
        self._limits = limits

    async def terminal(
        self,
        command: Annotated[str, Field(min_length=1, max_length=100_000, description="shell command")],
        timeout: Annotated[
            float | None, Field(gt=0, le=_MOST_SECONDS, description="seconds after which it is killed")
        ] = None,
    ) -> CommandResult:
        """Run a shell command in a sandbox: no network, only the working directory can be written."""
        if "\0" in command:
            raise ToolFailed("a command cannot contain a null character")
        seconds = timeout or self._limits.seconds
        process = await asyncio.create_subprocess_exec(
            *self._sandbox.arguments(self._root, command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            # The first process inside is a child of this one and shows its variables to the command.
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            cwd="/",
            start_new_session=True,
        )
        stdout, stderr = _Head(self._limits.output_bytes), _Head(self._limits.output_bytes)
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                group.create_task(stdout.drain(process.stdout))
                group.create_task(stderr.drain(process.stderr))
                await process.wait()
        except TimeoutError as error:
            raise ToolFailed(
                f"the command took more than {seconds:g} s and was killed{_so_far(stdout, stderr)}",
                hint="give a longer timeout, or do less at once",
            ) from error
        finally:
            await _kill(process)
        return CommandResult(
            exit_code=process.returncode or 0,
            stdout=stdout.text(),
            stderr=stderr.text(),
            truncated=stdout.is_cut or stderr.is_cut,
        )


class _Head:
    """The beginning of a stream. What comes after is read and dropped, so that the command never blocks."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self.is_cut = False

    async def drain(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        while data := await stream.read(65536):
            room = self._most - len(self._kept)
            self._kept += data[:room]
            self.is_cut = self.is_cut or len(data) > room

    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def _so_far(*streams: _Head) -> str:
    text = "\n".join(part for stream in streams if (part := stream.text().strip()))
    return f"; its output until then: {text[-2000:]}" if text else ""


async def _kill(process: Process) -> None:
    # The first process of the sandbox dies with this one, and the kernel kills the rest of its namespace.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
