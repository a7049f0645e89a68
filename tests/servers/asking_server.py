"""A server of the 2025 era, built with the SDK, that asks a person in the middle of a call. Over SSE."""

import argparse
import os
import socket

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel


class Name(BaseModel):
    name: str


def build() -> MCPServer:
    server = MCPServer("asking")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def greet(ctx: Context) -> str:
        """Asks for a name and greets."""
        answer = await ctx.elicit("What is your name?", Name)
        return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"{answer.action}d"

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["sse"], default="sse")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    listening = socket.create_server(("127.0.0.1", options.port))
    with open(options.port_file + ".new", "w") as file:
        file.write(str(listening.getsockname()[1]))
    os.replace(options.port_file + ".new", options.port_file)
    config = uvicorn.Config(build().sse_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
