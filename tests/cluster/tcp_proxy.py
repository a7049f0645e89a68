"""A way to a server that can be blocked, made slow and moved: between a node and NATS or PostgreSQL."""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class TcpProxy:
    """While `is_blocked` nothing passes, not even that a side has closed. `delay` is for each direction."""

    def __init__(self, to: int | Path) -> None:
        """A port of this machine, or a Unix socket."""
        self._to = to
        self._open = asyncio.Event()
        self._open.set()
        self.delay = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def move(self, to: int | Path) -> None:
        """To another server from now on; whoever is connected is cut off."""
        self._to = to
        self.cut()

    def lose(self, to: int | Path) -> None:
        """As if the machine of the server were gone: whoever is connected never hears anything any more.

        Who comes from now on is at another server.
        """
        self._open.clear()
        self._open = asyncio.Event()
        self._open.set()
        self._to = to

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
        is_open = self._open
        with suppress(OSError, asyncio.CancelledError):
            await is_open.wait()
            there, back = await self._connect()
            try:
                await asyncio.gather(
                    self._pass_on(reader, back, is_open), self._pass_on(there, writer, is_open)
                )
            finally:
                back.close()
        writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._to, Path):
            return await asyncio.open_unix_connection(self._to)
        return await asyncio.open_connection("127.0.0.1", self._to)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            await asyncio.sleep(self.delay)
            await is_open.wait()
            writer.write(data)
            await writer.drain()
        await is_open.wait()
        raise ConnectionResetError  # the other direction ends too
