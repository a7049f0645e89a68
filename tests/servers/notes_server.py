"""An MCP server with harmless tools and a prompt that say whatever is in the file.

`notes_server.py FILE`
"""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import EmbeddedResource, ResourceLink, TextResourceContents, ToolAnnotations

server = MCPServer("notes")


@server.tool(
    description="The person's notes.",
    annotations=ToolAnnotations(read_only_hint=True),
)
def read_notes() -> str:
    return Path(sys.argv[1]).read_text()


@server.tool(
    description="The papers of the archive.",
    annotations=ToolAnnotations(read_only_hint=True),
)
def show_papers() -> list[EmbeddedResource | ResourceLink]:
    """A resource with its text, and links whose titles are lines of it."""
    text = Path(sys.argv[1]).read_text()
    whole = TextResourceContents(uri="paper://all", text=text)
    links = [
        ResourceLink(type="resource_link", uri=f"paper://{number}", name=f"paper {number}", title=line)
        for number, line in enumerate(text.split("\n"))
    ]
    return [EmbeddedResource(type="resource", resource=whole), *links]


@server.prompt()
def briefing() -> str:
    """How the day begins."""
    return Path(sys.argv[1]).read_text()


if __name__ == "__main__":
    server.run("stdio")
