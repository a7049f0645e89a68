"""The MCP door of a hub in this process, on a Unix socket in a folder that only this user can enter."""

import asyncio
import socket as sockets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.types import Receive, Scope, Send

from dragoman.hub import Hub
from dragoman.mcp_endpoint import McpEndpoint
from dragoman.web.guard import CALLER


class _Quiet(uvicorn.Server):
    """Leaves the signals to the command."""

    def install_signal_handlers(self) -> None:
        return None


@asynccontextmanager
async def serving(hub: Hub, path: Path) -> AsyncGenerator[None]:
    endpoint = McpEndpoint(hub)

    async def owned(scope: Scope, receive: Receive, send: Send) -> None:
        """Whoever can enter the folder is who runs this process."""
        await endpoint({**scope, CALLER: hub.caller}, receive, send)

    config = uvicorn.Config(
        owned,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=3600,
        timeout_graceful_shutdown=2,
    )
    server = _Quiet(config)
    listener = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(1024)  # from here on a client may connect, and waits until it is answered
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(server._serve([listener]))  # pyright: ignore[reportPrivateUsage]
        try:
            yield
        finally:
            endpoint.stop()
            server.should_exit = True
            await task
