"""An MCP server over HTTP whose tool answers when two calls of it are under way at the same moment."""

import argparse
import asyncio
import os
import socket

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

LONGEST = 60.0 * float(os.environ.get("TEST_PATIENCE") or 1)


def build() -> MCPServer:
    server = MCPServer("meeting")
    barrier = asyncio.Barrier(2)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
    async def meet() -> str:
        """Waits for another call of it."""
        try:
            await asyncio.wait_for(barrier.wait(), LONGEST)
        except TimeoutError:
            return "was alone"
        return "met the other"

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    listening = socket.create_server(("127.0.0.1", options.port))
    with open(options.port_file + ".new", "w") as file:
        file.write(str(listening.getsockname()[1]))
    os.replace(options.port_file + ".new", options.port_file)
    config = uvicorn.Config(build().streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
