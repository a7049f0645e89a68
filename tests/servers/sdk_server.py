"""A server built with the official SDK, for checks of what real servers say: stdio, SSE and HTTP.

`--era 2025` keeps HTTP to sessions, `--era both` is what the SDK serves by itself.
"""

import argparse
import asyncio
import os
import socket

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations


def build() -> MCPServer:
    server = MCPServer("sdk-server", instructions="Built with the SDK.")
    count = 0

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def echo(text: str) -> str:
        """Says it again."""
        return text

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    def add(a: int, b: int) -> dict[str, int]:
        """Adds two numbers."""
        return {"sum": a + b}

    @server.tool()
    def next_count() -> dict[str, int]:
        """Counts calls of this process."""
        nonlocal count
        count += 1
        return {"count": count, "pid": os.getpid()}

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def sleep(seconds: float) -> str:
        """Waits."""
        await asyncio.sleep(seconds)
        return f"slept {seconds}"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def fail(text: str) -> str:
        """Fails."""
        raise ValueError(text)

    @server.tool()
    async def add_tool(name: str, ctx: Context) -> str:
        """Adds a tool and tells of it."""
        server.add_tool(lambda: f"{name} speaks", name=name, description=f"The tool {name}")
        await ctx.session.send_tool_list_changed()
        await ctx.notify_tools_changed()
        return f"added {name}"

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["stdio", "sse", "http"], default="stdio")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file")
    parser.add_argument("--json", action="store_true", help="answer in JSON, not with event streams")
    options = parser.parse_args()
    server = build()
    if options.transport == "stdio":
        return server.run("stdio")
    app = (
        server.sse_app()
        if options.transport == "sse"
        else server.streamable_http_app(json_response=options.json)
    )
    listening = socket.create_server(("127.0.0.1", options.port))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer waits 40 ms
    if options.port_file:
        with open(options.port_file + ".new", "w") as file:
            file.write(str(listening.getsockname()[1]))
        os.replace(options.port_file + ".new", options.port_file)
    return uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
