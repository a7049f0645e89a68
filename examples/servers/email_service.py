"""The sample e-mail service with an OpenAPI document: the same mailbox as the MCP sample, over plain HTTP.

    python email_service.py --mailbox FILE --port 0 --port-file PORT

It sends nothing anywhere: what is sent is kept in the mailbox.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel, Field

from listening import serve
from mailboxes import Mailbox, listed_addresses

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
        matching = mailbox.find_inbox(sender, subject_contains, unread_only)
        found = [Email(**asdict(message)) for message in matching]
        return Emails(emails=found[:limit], count=len(found[:limit]), more=len(found) > limit)

    _ = send_email, read_emails  # the app holds them
    return app


def _checked(addresses: str | list[str] | None) -> list[str]:
    """As a list; an address that is none is a refusal that names it."""
    try:
        return listed_addresses(addresses)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None


def main() -> None:
    parser = argparse.ArgumentParser(prog="email_service.py", description="A sample e-mail service.")
    parser.add_argument("--mailbox", type=Path, required=True, metavar="FILE", help="made if it is missing")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--port-file", type=Path, metavar="FILE", help="written once it listens")
    options = parser.parse_args()
    serve(build_app(Mailbox(options.mailbox)), options.port, options.port_file)


if __name__ == "__main__":
    main()
