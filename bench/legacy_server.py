"""The SDK's test server over HTTP, kept to the 2025 era: it answers the newer one as older servers do."""

import argparse
import os
import socket

import uvicorn
from peers import SERVERS
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

REFUSAL = {
    "jsonrpc": "2.0",
    "id": "server-error",
    "error": {"code": -32600, "message": "Bad Request: Unsupported protocol version"},
}


class LegacyOnly:
    """Refuses a request that carries the header of the 2026 era, before anything is read of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and any(
            name == b"mcp-protocol-version" and value.startswith(b"2026") for name, value in scope["headers"]
        ):
            await JSONResponse(REFUSAL, 400)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    app = LegacyOnly(SERVERS.sdk().streamable_http_app())
    listening = socket.create_server(("127.0.0.1", options.port))
    with open(options.port_file + ".new", "w") as file:
        file.write(str(listening.getsockname()[1]))
    os.replace(options.port_file + ".new", options.port_file)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
