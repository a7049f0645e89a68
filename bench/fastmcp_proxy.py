"""A FastMCP proxy with a connected client in front of one server. Runs in a venv of its own."""

import argparse
import asyncio
import json
import logging
import os
import socket
from typing import Any

import uvicorn
from fastmcp import Client  # pyright: ignore[reportMissingImports]
from fastmcp.server import create_proxy  # pyright: ignore[reportMissingImports]


async def serve(target: dict[str, Any], port: int, port_file: str) -> None:
    logging.disable(logging.INFO)
    client: Any = Client({"mcpServers": {"bench": target}} if "command" in target else target["url"])
    async with client:
        app: Any = create_proxy(client).http_app(json_response=True)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
            listening.bind(("127.0.0.1", port))
            listening.listen(1024)
            with open(port_file + ".new", "w") as file:
                file.write(str(listening.getsockname()[1]))
            os.replace(port_file + ".new", port_file)
            config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=600)
            await uvicorn.Server(config).serve(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True, help="JSON: url, or command and args")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    asyncio.run(serve(json.loads(options.target), options.port, options.port_file))


if __name__ == "__main__":
    main()
