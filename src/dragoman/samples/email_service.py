"""The sample e-mail service with an OpenAPI document: the same mailbox as the MCP sample, over plain HTTP.

    python -m dragoman.samples.email_service --mailbox FILE --port 0 --port-file PORT

It sends nothing anywhere: what is sent is kept in the mailbox.
"""

import argparse
import re
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel, Field

from dragoman.samples.mailbox import Mailbox, write_atomically

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")

Address = Annotated[str, Field(json_schema_extra={"format": "email"})]
Addresses = Address | list[Address]


class NewEmail(BaseModel):
    to: Annotated[Addresses, Field(description="one address or several")]
    subject: str = ""
    body: str = ""
    cc: Annotated[Addresses | None, Field(description="one address or several")] = None
    bcc: Annotated[Addresses | None, Field(description="one address or several")] = None


class Sent(BaseModel):
    id: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    date: str


class Email(BaseModel):
    id: str
    folder: str
    sender: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    body: str
    date: str
    unread: bool


class Emails(BaseModel):
    emails: list[Email]
    count: int
    more: bool


def build_app(mailbox: Mailbox) -> FastAPI:
    app = FastAPI(
        title="Sample e-mail",
        version="1.0.0",
        description="Reads and sends e-mail of one mailbox.",
        docs_url=None,
        redoc_url=None,
    )

    @app.post("/emails", operation_id="send-email", summary="Send an e-mail", status_code=201)
    def send_email(email: NewEmail) -> Sent:
        """Send an e-mail to one or more people."""
        recipients = _checked(email.to)
        if not recipients:
            raise HTTPException(422, "'to' needs at least one address")
        sent = mailbox.send(
            to=recipients,
            subject=email.subject,
            body=email.body,
            cc=_checked(email.cc),
            bcc=_checked(email.bcc),
        )
        return Sent(**{name: value for name, value in asdict(sent).items() if name in Sent.model_fields})

    @app.get("/emails", operation_id="read-emails", summary="Read e-mails")
    def read_emails(
        limit: Annotated[int, Query(ge=1, le=100, description="most e-mails to return")] = 10,
        sender: Annotated[str | None, Query(description="part of the sender's address")] = None,
        subject_contains: Annotated[str | None, Query(description="part of the subject")] = None,
        unread_only: bool = False,
    ) -> Emails:
        """List e-mails of the inbox, newest first. Reading marks nothing as read."""
        found = [
            Email(**asdict(message))
            for message in mailbox.list_inbox()
            if (sender is None or sender.lower() in message.sender.lower())
            and (subject_contains is None or subject_contains.lower() in message.subject.lower())
            and (message.unread or not unread_only)
        ]
        return Emails(emails=found[:limit], count=len(found[:limit]), more=len(found) > limit)

    _ = send_email, read_emails  # the app holds them
    return app


def _checked(addresses: str | list[str] | None) -> list[str]:
    """As a list; an address that is none is a refusal that names it."""
    listed = [addresses] if isinstance(addresses, str) else addresses or []
    for address in listed:
        if not _ADDRESS.fullmatch(address):
            raise HTTPException(422, f"{address!r} is not an e-mail address")
    return listed


class _AnnouncingServer(uvicorn.Server):
    """Says where it listens once it does: on the first line of stdout, and in a file if one is named."""

    def __init__(self, config: uvicorn.Config, port: int, port_file: Path | None) -> None:
        super().__init__(config)
        self._port = port
        self._port_file = port_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        print(f"http://127.0.0.1:{self._port}", flush=True)
        if self._port_file:
            write_atomically(self._port_file, f"{self._port}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m dragoman.samples.email_service", description="A sample e-mail service."
    )
    parser.add_argument("--mailbox", type=Path, required=True, metavar="FILE", help="made if it is missing")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--port-file", type=Path, metavar="FILE", help="written once it listens")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", options.port)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer waits 40 ms
        bound: int = listener.getsockname()[1]
        config = uvicorn.Config(
            build_app(Mailbox(options.mailbox)), log_level="warning", timeout_graceful_shutdown=2
        )
        _AnnouncingServer(config, bound, options.port_file).run(sockets=[listener])


if __name__ == "__main__":
    main()
