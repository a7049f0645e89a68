"""A way to a server that can be blocked, made slow and moved: between a node and NATS or PostgreSQL."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self


class TcpProxy:
    """While `is_blocked` nothing passes, and nobody is told so. `delay` is for each direction."""

    def __init__(self, port: int) -> None:
        """`port` is the server's, on this machine."""
        self._to = port
        self._open = asyncio.Event()
        self._open.set()
        self.delay = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def move(self, port: int) -> None:
        """To another server from now on; whoever is connected is cut off."""
        self._to = port
        self.cut()

    def cut(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def is_blocked(self) -> bool:
        return not self._open.is_set()

    @is_blocked.setter
    def is_blocked(self, blocked: bool) -> None:
        (self._open.clear if blocked else self._open.set)()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(OSError, asyncio.CancelledError):
            await self._open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
            try:
                await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))
            finally:
                back.close()
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await asyncio.sleep(self.delay)
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError  # the other direction ends too
