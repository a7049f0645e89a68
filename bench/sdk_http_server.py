"""The SDK's test server over HTTP as a real one is run: without Nagle's delay, quiet, in the era asked for.

Kept to the 2025 era it answers requests of the newer one as older servers do.
"""

import argparse
import logging
import os
import runpy
import socket
from pathlib import Path

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

SDK_SERVER = Path(__file__).parents[1] / "tests" / "servers" / "sdk_server.py"
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
    parser.add_argument("--era", choices=["2025", "2026"], default="2026")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    app: ASGIApp = runpy.run_path(str(SDK_SERVER))["build"]().streamable_http_app()
    logging.disable(logging.INFO)
    # asyncio turns Nagle's algorithm off only for sockets that name their protocol.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", options.port))
        listening.listen(1024)
        with open(options.port_file + ".new", "w") as file:
            file.write(str(listening.getsockname()[1]))
        os.replace(options.port_file + ".new", options.port_file)
        served = LegacyOnly(app) if options.era == "2025" else app
        # A contender waits while the others have their turn: its connection must not be closed meanwhile.
        config = uvicorn.Config(served, log_level="warning", timeout_keep_alive=600)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
