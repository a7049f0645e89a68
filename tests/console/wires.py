"""A wire that can be cut: a TCP relay before a service, whose connections break when a test wants it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Wire:
    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self.url = ""
        self.is_cut = False

    def cut(self) -> None:
        """What is connected breaks in the middle of whatever it says, and nobody connects."""
        self.is_cut = True
        for writer in [*self._open]:
            writer.transport.abort()

    def mend(self, url: str | None = None) -> None:
        """It leads where it led before, or to another service."""
        self.is_cut = False
        if url is not None:
            self._port = _port(url)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        ends = {writer, back}
        self._open |= ends
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, back))
                tasks.create_task(_pump(there, writer))
        finally:
            self._open -= ends
            for end in ends:
                end.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.transport.abort()


@asynccontextmanager
async def opened_wire(url: str) -> AsyncGenerator[Wire]:
    wire = Wire(_port(url))
    server = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        wire.cut()
        server.close()
        await server.wait_closed()


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
