"""A sample MCP server whose one tool takes its time and tells how far it is, over stdio.

python report_server.py
"""

import asyncio
import os
from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field


@dataclass(frozen=True)
class Report:
    text: str
    process: int


def build_server() -> MCPServer:
    server = MCPServer(
        "sample-reports", version="1.0.0", instructions="Writes reports, slowly.", log_level="WARNING"
    )

    @server.tool(
        "write-report",
        title="Write a report",
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    async def write_report(
        context: Context, seconds: Annotated[int, Field(ge=1, le=60, description="how long it takes")] = 10
    ) -> Report:
        """Write a report of the day. It takes some seconds."""
        for done in range(seconds):
            await context.report_progress(done, seconds)
            await asyncio.sleep(1)
        return Report(f"A calm day: all is well, after {seconds} seconds of looking.", os.getpid())

    return server


if __name__ == "__main__":
    build_server().run("stdio")
