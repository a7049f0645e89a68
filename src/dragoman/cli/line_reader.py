"""Lines of a pipe, a terminal or a file, read by a thread, so that the loop never waits."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import BinaryIO

_AHEAD = 100


async def lines_of(file: BinaryIO) -> AsyncGenerator[bytes]:
    """Ends with the file. The thread is a daemon: a read that never returns does not keep the process."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)

    def read() -> None:
        while True:
            room.acquire()
            try:
                line = file.readline()
                loop.call_soon_threadsafe(lines.put_nowait, line)
            except (OSError, ValueError, RuntimeError):
                return  # the file, or the loop, was closed
            if not line:
                return

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while line := await lines.get():
        room.release()
        yield line
