"""How a sample listens on this machine and says where. Knows nothing of what it serves."""

import socket
from pathlib import Path
from typing import Any

import uvicorn

from state import write_atomically


class _AnnouncingServer(uvicorn.Server):
    """Says where it listens once it does: on the first line of stdout, and in a file if one is named."""

    def __init__(self, config: uvicorn.Config, url: str, port: int, port_file: Path | None) -> None:
        super().__init__(config)
        self._url = url
        self._port = port
        self._port_file = port_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        print(self._url, flush=True)
        if self._port_file:
            write_atomically(self._port_file, f"{self._port}\n")


def serve(app: Any, port: int, port_file: Path | None, path: str = "") -> None:
    """Serves an ASGI app on 127.0.0.1 until it is told to stop; port 0 takes a free one."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer waits 40 ms
        bound: int = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        _AnnouncingServer(config, f"http://127.0.0.1:{bound}{path}", bound, port_file).run(sockets=[listener])
