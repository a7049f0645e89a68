"""A mailbox on disk that several processes may share. A new one begins with six messages."""

import re
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import uuid4

from state import Document, State

OWNER = "you@example.com"


_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")


@dataclass(frozen=True, kw_only=True)  # no slots: the SDK takes their descriptors for defaults
class Message:
    """One e-mail, in the inbox or among those sent."""

    id: str
    folder: Literal["inbox", "sent"]
    sender: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    body: str
    date: str
    unread: bool


class Mailbox:
    """Holds no file open between two calls."""

    def __init__(self, path: Path, owner: str = OWNER) -> None:
        self._state = State(path, _seeded)
        self._owner = owner

    def list_inbox(self) -> list[Message]:
        """Newest first."""
        messages = _messages(self._state.read())
        inbox = [message for message in messages if message.folder == "inbox"]
        return sorted(inbox, key=lambda message: message.date, reverse=True)

    def find_inbox(
        self, sender: str | None, subject_contains: str | None, unread_only: bool
    ) -> list[Message]:
        """Those of the inbox that match all that is asked, newest first."""
        return [
            message
            for message in self.list_inbox()
            if (sender is None or sender.lower() in message.sender.lower())
            and (subject_contains is None or subject_contains.lower() in message.subject.lower())
            and (message.unread or not unread_only)
        ]

    def list_sent(self) -> list[Message]:
        """Newest first."""
        messages = _messages(self._state.read())
        return [message for message in reversed(messages) if message.folder == "sent"]

    def send(self, *, to: list[str], subject: str, body: str, cc: list[str], bcc: list[str]) -> Message:
        """Keeps the message among those sent, and delivers it where it is addressed to the owner."""
        message = Message(
            id=f"msg-{uuid4().hex[:12]}",
            folder="sent",
            sender=self._owner,
            to=to,
            cc=cc,
            bcc=bcc,
            subject=subject,
            body=body,
            date=datetime.now(UTC).isoformat(timespec="microseconds"),
            unread=False,
        )
        new = [message]
        if self._owner in {address.lower() for address in (*to, *cc, *bcc)}:
            new.append(replace(message, id=f"msg-{uuid4().hex[:12]}", folder="inbox", bcc=[], unread=True))
        with self._state.changing() as document:
            document["messages"] += [asdict(one) for one in new]
        return message


def _messages(document: Document) -> list[Message]:
    return [Message(**fields) for fields in document["messages"]]


def _seeded() -> Document:
    return {"messages": [asdict(message) for message in SEED]}


def _seed(number: int, date: str, sender: str, subject: str, body: str, *, unread: bool) -> Message:
    return Message(
        id=f"msg-{number:04}",
        folder="inbox",
        sender=sender,
        to=[OWNER],
        cc=[],
        bcc=[],
        subject=subject,
        body=body,
        date=date,
        unread=unread,
    )


SEED = (
    _seed(
        1,
        "2026-03-02T08:14:00+00:00",
        "giulia.ferri@example.com",
        "Minutes of Monday's planning meeting",
        "Hello,\n\nthe minutes are attached to the project page. Two points are yours: the budget table and"
        " the date of the review. Could you fill them in by Thursday?\n\nGiulia",
        unread=False,
    ),
    _seed(
        2,
        "2026-03-02T16:40:00+00:00",
        "billing@hosting.example",
        "Invoice 2026-0311 is ready",
        "Your invoice 2026-0311 of 48.20 EUR is ready. It will be charged to your card on 9 March.",
        unread=False,
    ),
    _seed(
        3,
        "2026-03-03T07:05:00+00:00",
        "alerts@monitoring.example",
        "[resolved] High latency on api-2",
        "The alert 'p99 above 800 ms on api-2' was resolved after 14 minutes. No action is needed.",
        unread=True,
    ),
    _seed(
        4,
        "2026-03-03T09:30:00+00:00",
        "ken.tanaka@example.org",
        "Call with the Tokyo office",
        "Good morning,\n\nwould Wednesday at nine, your time, suit you for the call? That is late afternoon"
        " for us.\n\nBest regards,\nKen",
        unread=True,
    ),
    _seed(
        5,
        "2026-03-03T11:52:00+00:00",
        "newsletter@pyweekly.example",
        "This week: structured concurrency in practice",
        "In this issue: task groups explained with three diagrams, a tour of the new REPL, and five small"
        " libraries worth knowing.",
        unread=False,
    ),
    _seed(
        6,
        "2026-03-04T06:21:00+00:00",
        "giulia.ferri@example.com",
        "Re: Budget table",
        "Thank you, the table looks right. One question: does the travel line include the trip to Lyon?"
        "\n\nGiulia",
        unread=True,
    ),
)


def listed_addresses(addresses: str | list[str] | None) -> list[str]:
    """One address or several as a list; `ValueError` names one that is none."""
    listed = [addresses] if isinstance(addresses, str) else addresses or []
    for address in listed:
        if not _ADDRESS.fullmatch(address):
            raise ValueError(f"{address!r} is not an e-mail address")
    return listed
