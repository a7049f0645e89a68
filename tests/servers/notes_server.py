"""An MCP server with one harmless tool whose text says whatever is in the file.

`notes_server.py FILE`
"""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("notes")


@server.tool(
    description="The person's notes.",
    annotations=ToolAnnotations(read_only_hint=True),
)
def read_notes() -> str:
    return Path(sys.argv[1]).read_text()


if __name__ == "__main__":
    server.run("stdio")
