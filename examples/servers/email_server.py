"""A sample MCP server with two tools over a mailbox on disk, by stdio or by streamable HTTP.

    python email_server.py --mailbox FILE
    python email_server.py --mailbox FILE --http --port 0 --port-file PORT

It sends nothing anywhere: what is sent is kept in the mailbox.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from listening import serve
from mailboxes import Mailbox, Message, listed_addresses

Address = Annotated[str, Field(json_schema_extra={"format": "email"})]
Addresses = Address | list[Address]


@dataclass(frozen=True)
class Sent:
    id: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    date: str


@dataclass(frozen=True)
class Emails:
    emails: list[Message]
    count: int
    more: bool


def build_server(mailbox: Mailbox) -> MCPServer:
    server = MCPServer(
        "sample-email",
        version="1.0.0",
        instructions="Reads and sends e-mail of one mailbox.",
        log_level="WARNING",
    )

    @server.tool(
        "send-email",
        title="Send an e-mail",
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
        ),
    )
    def send_email(
        to: Annotated[Addresses, Field(description="one address or several")],
        subject: str = "",
        body: str = "",
        cc: Annotated[Addresses | None, Field(description="one address or several")] = None,
        bcc: Annotated[Addresses | None, Field(description="one address or several")] = None,
    ) -> Sent:
        """Send an e-mail to one or more people."""
        recipients = checked(to)
        if not recipients:
            raise ToolError("'to' needs at least one address")
        sent = mailbox.send(to=recipients, subject=subject, body=body, cc=checked(cc), bcc=checked(bcc))
        return Sent(sent.id, sent.to, sent.cc, sent.bcc, sent.subject, sent.date)

    @server.tool(
        "read-emails",
        title="Read e-mails",
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    def read_emails(
        limit: Annotated[int, Field(ge=1, le=100, description="most e-mails to return")] = 10,
        sender: Annotated[str | None, Field(description="part of the sender's address")] = None,
        subject_contains: Annotated[str | None, Field(description="part of the subject")] = None,
        unread_only: bool = False,
    ) -> Emails:
        """List e-mails of the inbox, newest first. Reading marks nothing as read."""
        found = mailbox.find_inbox(sender, subject_contains, unread_only)
        return Emails(found[:limit], len(found[:limit]), len(found) > limit)

    return server


def checked(addresses: str | list[str] | None) -> list[str]:
    """As a list; an address that is none is an error that names it."""
    try:
        return listed_addresses(addresses)
    except ValueError as error:
        raise ToolError(str(error)) from None


def main() -> None:
    parser = argparse.ArgumentParser(prog="email_server.py", description="A sample e-mail server.")
    parser.add_argument("--mailbox", type=Path, required=True, metavar="FILE", help="made if it is missing")
    parser.add_argument("--http", action="store_true", help="listen on 127.0.0.1 instead of stdio")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--port-file", type=Path, metavar="FILE", help="written once it listens")
    options = parser.parse_args()
    server = build_server(Mailbox(options.mailbox))
    if options.http:
        serve(server.streamable_http_app(host="127.0.0.1"), options.port, options.port_file, "/mcp")
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
