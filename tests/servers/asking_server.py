"""A server of the 2025 era, built with the SDK, that asks a person in the middle of a call. Over HTTP."""

import argparse
import asyncio
import os
import socket

import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Name(BaseModel):
    name: str


def build() -> MCPServer:
    server = MCPServer("asking")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def greet(ctx: Context) -> str:
        """Asks for a name and greets."""
        answer = await ctx.elicit("What is your name?", Name)
        return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"{answer.action}d"

    @server.tool()
    async def sign(ctx: Context) -> str:
        """Asks for a name and signs with it."""
        answer = await ctx.elicit("Who signs?", Name)
        return f"signed by {answer.data.name}" if answer.action == "accept" else f"{answer.action}d"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def introduce(ctx: Context) -> str:
        """Asks for two names, one after the other."""
        names: list[str] = []
        for which in ("first", "second"):
            answer = await ctx.elicit(f"What is your {which} name?", Name)
            names.append(answer.data.name if answer.action == "accept" else f"{answer.action}d")
        return " ".join(names)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def rename(old: str, ctx: Context) -> str:
        """Asks for the new name of somebody."""
        answer = await ctx.elicit(f"What is the new name of {old}?", Name)
        return f"{old} is {answer.data.name}" if answer.action == "accept" else f"{old}: {answer.action}d"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def find(old: str) -> str:
        """Knows nobody."""
        raise MCPError(-32602, f"there is no {old}", {"name": old})

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def count(ctx: Context) -> str:
        """Asks who counts, tells how far it has come, and goes on for ever with "nobody"."""
        answer = await ctx.elicit("Who counts?", Name)
        for number in (1, 2, 3):
            await ctx.report_progress(number, 3, f"step {number}")
        if answer.action == "accept" and answer.data.name == "nobody":
            await asyncio.Event().wait()
        return "counted"

    return server


class LegacyOnly:
    """Refuses what carries the header of the 2026 era, as older servers do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = dict(scope.get("headers", ())).get(b"mcp-protocol-version", b"")
        if version.startswith(b"2026"):
            error = {"code": -32600, "message": "Bad Request: Unsupported protocol version"}
            await JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    listening = socket.create_server(("127.0.0.1", options.port))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer waits 40 ms
    with open(options.port_file + ".new", "w") as file:
        file.write(str(listening.getsockname()[1]))
    os.replace(options.port_file + ".new", options.port_file)
    config = uvicorn.Config(LegacyOnly(build().streamable_http_app()), log_level="warning")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
