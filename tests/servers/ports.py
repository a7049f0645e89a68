"""A port to serve on, for servers of tests. Knows nothing of what is served."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext

import uvicorn

from patience import until


def listen(port: int = 0) -> socket.socket:
    """On this machine only; 0 takes a free port."""
    # Said to be TCP in so many words: asyncio turns Nagle's delay off only then, which costs 40 ms a request.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


@asynccontextmanager
async def served(server: uvicorn.Server, listener: socket.socket) -> AsyncGenerator[None]:
    """From here on it answers, in the loop of the test; signals are the test's own."""
    server.capture_signals = nullcontext  # type: ignore[method-assign]
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await until(lambda: server.started or serving.done())
        yield
    finally:
        server.should_exit = True
        await serving
