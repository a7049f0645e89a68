"""A sample MCP server for a restaurant, over stdio: it tells how far it is, asks for the name of the guest in
the middle of a call, and has a resource and a prompt.

python booking_server.py
"""

from typing import Annotated

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

MENU = "Lentil soup, 7.50\nRisotto with peas, 14.00\nPear tart, 6.00\n"


class Guest(BaseModel):
    name: str = Field(description="who comes")


async def asked_guest(context: Context) -> Elicit[Guest]:
    await context.report_progress(1, 2, "looking for a table")
    return Elicit("For whom is the table?", Guest)


def build_server() -> MCPServer:
    server = MCPServer("sample-booking", version="1.0.0", log_level="WARNING")

    @server.tool("book-table", annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
    async def book_table(
        context: Context,
        seats: Annotated[int, Field(ge=1, le=8, description="how many people")],
        guest: Annotated[ElicitationResult[Guest], Resolve(asked_guest)],
    ) -> str:
        """Book a table for tonight."""
        await context.report_progress(2, 2, "writing it down")
        if isinstance(guest, AcceptedElicitation):
            return f"A table for {seats} is booked for {guest.data.name}."
        return "No name, no table."

    @server.resource("booking://menu", title="Tonight's menu", mime_type="text/plain")
    def menu() -> str:
        """What there is tonight, with prices."""
        return MENU

    @server.prompt(title="Invite somebody")
    def invite(guest: str) -> str:
        """Write an invitation to dinner."""
        return f"Write a short, warm invitation to dinner for {guest}. Tonight's menu:\n{MENU}"

    _ = book_table, menu, invite  # the server holds them
    return server


if __name__ == "__main__":
    build_server().run("stdio")
