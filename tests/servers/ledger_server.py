"""An MCP server over HTTP that writes down every execution before and after it: name and argument, on disk.

`look` only reads, `post` and `pay` must not be repeated. Every result names the argument it is the result of.
"""

import argparse
import asyncio
import os
import socket
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)


class Name(BaseModel):
    name: str


def build(folder: Path) -> MCPServer:
    server = MCPServer("ledger")

    def write(ledger: str, line: str) -> None:
        with (folder / f"{ledger}.ledger").open("a") as file:
            file.write(line.replace("\n", " ") + "\n")

    async def execute(tool: str, text: str, ledger: str, seconds: float) -> str:
        write(ledger, f"began {tool} {text}")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            write(ledger, f"cancelled {tool} {text}")
            raise
        write(ledger, f"ended {tool} {text}")
        return f"{tool} of {text}"

    @server.tool(annotations=READS, structured_output=False)
    async def look(text: str, ledger: str, seconds: float = 0.02) -> str:
        """Looks something up."""
        return await execute("look", text, ledger, seconds)

    @server.tool(annotations=WRITES, structured_output=False)
    async def post(text: str, ledger: str, seconds: float = 0.02) -> str:
        """Posts something."""
        return await execute("post", text, ledger, seconds)

    @server.tool(annotations=WRITES, structured_output=False)
    async def pay(text: str, ledger: str, seconds: float = 0.02) -> str:
        """Pays something."""
        return await execute("pay", text, ledger, seconds)

    @server.tool(annotations=READS, structured_output=False)
    async def greet(ledger: str, ctx: Context) -> str:
        """Asks for a name and greets."""
        write(ledger, "began greet")
        answer = await ctx.elicit("What is your name?", Name)
        write(ledger, "ended greet")
        return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"{answer.action}d"

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    listening = socket.create_server(("127.0.0.1", options.port))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer waits 40 ms
    with open(options.port_file + ".new", "w") as file:
        file.write(str(listening.getsockname()[1]))
    os.replace(options.port_file + ".new", options.port_file)
    config = uvicorn.Config(build(options.folder).streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
