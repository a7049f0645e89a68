"""MCP over stdin and stdout, to a running service or to a hub of this process. Imports the whole stack."""

import asyncio
import socket as sockets
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import BinaryIO

import aiohttp
import uvicorn
from starlette.types import Receive, Scope, Send

from dragoman.cli.door import RunningService
from dragoman.hub import Hub
from dragoman.mcp_endpoint import McpEndpoint
from dragoman.mcp_endpoint.bridge import Bridge
from dragoman.settings import Settings
from dragoman.telemetry.redaction import Redactor
from dragoman.web.guard import CALLER


class _Quiet(uvicorn.Server):
    """Leaves the signals to the command."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


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
        task = tasks.create_task(server.serve([listener]))
        try:
            yield
        finally:
            endpoint.stop()
            server.should_exit = True
            await task


_AHEAD = 100  # lines read before they are asked for


async def speak(settings: Settings, service: RunningService | None, path: str, redactor: Redactor) -> None:
    """Until stdin ends."""
    try:
        if service is not None:
            headers = {"Authorization": f"Bearer {service.token}"}
            async with _client(None, headers) as http:
                await _bridge(http, service.url + path, f"the service at {service.url}")
        else:
            async with _own_hub(settings, redactor) as http:
                await _bridge(http, f"http://localhost{path}", "Dragoman")
    except* BrokenPipeError:
        pass  # the client has gone; so do we


async def _bridge(http: aiohttp.ClientSession, url: str, where: str) -> None:
    out = sys.stdout.buffer

    def write(line: bytes) -> None:
        out.write(line + b"\n")
        out.flush()

    await Bridge(http, url, write, where).run(_lines_of(sys.stdin.buffer))


@asynccontextmanager
async def _own_hub(settings: Settings, redactor: Redactor) -> AsyncGenerator[aiohttp.ClientSession]:
    """The same door on a socket of this process that nobody else can reach."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        socket = Path(folder, "mcp")
        async with (
            Hub(settings, redactor=redactor) as hub,
            serving(hub, socket),
            _client(aiohttp.UnixConnector(str(socket), limit=0), {}) as http,
        ):
            yield http


def _client(connector: aiohttp.BaseConnector | None, headers: dict[str, str]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector or aiohttp.TCPConnector(limit=0),
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        # No limit of its own: the deadline of a call is the connector's.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
        trust_env=connector is None,
    )


async def _lines_of(file: BinaryIO) -> AsyncGenerator[bytes]:
    """Read by a thread, so that the loop never waits; ends with the file.

    The thread is a daemon: a read that never returns does not keep the process.
    """
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
