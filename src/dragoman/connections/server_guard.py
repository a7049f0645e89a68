"""Has the servers of this node ended in time, also when this process is frozen: by a small one beside it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

_PROGRAM = Path(__file__).with_name("guard_program.py")


class ServerGuard:
    """What the guard is told. Never waits: a guard that is gone is no reason to stop."""

    def __init__(self, pipe: int) -> None:
        self._pipe: int | None = pipe

    def lease(self, until: float) -> None:
        """This node may hold servers until then, on the clock of the machine."""
        self._tell(f"lease {until:.3f}\n")

    def server(self, pid: int) -> None:
        """The leader of the process group of a server."""
        self._tell(f"server {pid}\n")

    def _tell(self, line: str) -> None:
        if self._pipe is not None:
            with suppress(BrokenPipeError, BlockingIOError):
                os.write(self._pipe, line.encode())

    def end(self) -> None:
        """Nothing is told any more."""
        self._pipe = None


def _start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", str(_PROGRAM)], stdin=subprocess.PIPE, start_new_session=True, bufsize=0
    )


@asynccontextmanager
async def open_guard() -> AsyncGenerator[ServerGuard]:
    """It runs while the block does; at the end it ends what is left."""
    process = _start()
    assert process.stdin is not None
    pipe = process.stdin.fileno()
    os.set_blocking(pipe, False)
    guard = ServerGuard(pipe)
    try:
        yield guard
    finally:
        guard.end()
        process.stdin.close()
        await asyncio.to_thread(process.wait)
