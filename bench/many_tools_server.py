"""A server of the SDK with many tools, over HTTP, for measuring how long a list takes."""

import argparse
import logging
import os
import socket
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import MCPServer
from pydantic import Field


def build(count: int) -> MCPServer:
    server = MCPServer("many")

    def search(
        query: Annotated[str, Field(description="what to look for, in the words of the person who asks")],
        limit: Annotated[int, Field(description="how many at most", ge=1, le=100)] = 10,
        labels: Annotated[list[str] | None, Field(description="only those with all of these labels")] = None,
        state: Annotated[str, Field(description="open, closed or all")] = "open",
    ) -> list[dict[str, str]]:
        return [{"query": query}]

    for number in range(count):
        text = (
            f"Searches the records of department {number} and answers with those that fit best, newest first."
        )
        server.add_tool(search, name=f"search_department_{number}", description=text)
    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=int, default=200)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    app = build(options.tools).streamable_http_app(json_response=True)
    logging.disable(logging.INFO)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", options.port))
        listening.listen(1024)
        with open(options.port_file + ".new", "w") as file:
            file.write(str(listening.getsockname()[1]))
        os.replace(options.port_file + ".new", options.port_file)
        config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=600)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
