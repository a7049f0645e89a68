"""Channels of a team and what was written in them, on disk, for the chat sample. Knows no protocol.

What is asked for and does not exist is a `LookupError` that says what there is; a new file begins with
four channels, five people and ten messages.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from account import ME, person
from state import Document, State, ago, moment, now


@dataclass(frozen=True, kw_only=True)  # no slots: the SDK takes their descriptors for defaults
class Message:
    """`reply_to` is the id of another message of the same channel."""

    id: str
    channel: str
    sender: str
    text: str
    time: str
    reply_to: str | None = None

    @property
    def uri(self) -> str:
        return f"chat://{self.channel}/{self.id}"


@dataclass(frozen=True, kw_only=True)
class Channel:
    name: str
    topic: str
    members: list[str]
    messages: int


@dataclass(frozen=True, kw_only=True)
class Member:
    name: str
    full_name: str
    presence: Literal["active", "away"]
    status: str


class Channels:
    """Holds no file open between two calls."""

    def __init__(self, path: Path) -> None:
        self._state = State(path, _seeded)

    def list_channels(self, query: str = "") -> list[Channel]:
        """Those whose name or topic contains the query, by name."""
        document = self._state.read()
        written = [message["channel"] for message in document["messages"]]
        found = [Channel(**fields, messages=written.count(fields["name"])) for fields in document["channels"]]
        wanted = query.lower().removeprefix("#")
        return sorted(
            (one for one in found if wanted in f"{one.name} {one.topic}".lower()), key=lambda one: one.name
        )

    def find_messages(
        self, *, channel: str | None, sender: str | None, since: str | None, words: str = ""
    ) -> list[Message]:
        """Those that match all that is given, newest first; every one of the words must occur."""
        document = self._state.read()
        name = None if channel is None else _known(document, channel)["name"]
        start = None if since is None else moment(since)
        found = [
            message
            for message in _messages(document)
            if name in (None, message.channel)
            and (sender is None or person(sender) == message.sender)
            and (start is None or moment(message.time) >= start)
            and all(word in message.text.lower() for word in words.lower().split())
        ]
        return sorted(found, key=lambda message: moment(message.time), reverse=True)

    def get_message(self, channel: str, number: str) -> Message:
        return _message(self._state.read(), channel, number)

    def post(self, channel: str, text: str, reply_to: str | None) -> Message:
        with self._state.changing() as document:
            name: str = _known(document, channel)["name"]
            if reply_to is not None:
                _message(document, name, reply_to)
            number = f"m{len(document['messages']) + 1}"
            message = Message(id=number, channel=name, sender=ME, text=text, time=now(), reply_to=reply_to)
            document["messages"].append(asdict(message))
        return message

    def list_members(self, channel: str | None) -> list[Member]:
        """Of one channel or of all, by name."""
        document = self._state.read()
        inside = None if channel is None else _known(document, channel)["members"]
        members = [Member(**fields) for fields in document["members"]]
        return sorted(
            (one for one in members if inside is None or one.name in inside), key=lambda one: one.name
        )


def _messages(document: Document) -> list[Message]:
    return [Message(**fields) for fields in document["messages"]]


def _known(document: Document, channel: str) -> Document:
    asked = channel.strip().removeprefix("#").lower()
    for fields in document["channels"]:
        if fields["name"] == asked:
            return fields
    names = ", ".join(f"#{fields['name']}" for fields in document["channels"])
    raise LookupError(f"there is no channel {channel!r}; there is {names}")


def _message(document: Document, channel: str, number: str) -> Message:
    name = _known(document, channel)["name"]
    for message in _messages(document):
        if (message.channel, message.id) == (name, number):
            return message
    raise LookupError(f"there is no message {number!r} in #{name}; read_messages shows those there are")


def _seeded() -> Document:
    everybody = ["mira", ME, "oncall", "sofia", "tomas"]
    lines = [
        ("general", "mira", 2900, "Good morning! The release notes for 4.2 are in the handbook."),
        ("general", "sofia", 2870, "Thank you. Lunch together on Thursday, as always?"),
        ("dev", "tomas", 1500, "The import runs at 40 per second now, the limit was too low."),
        ("dev", "mira", 1440, "Seen, I closed the issue."),
        ("alerts", "oncall", 1210, "Disk of db-2 was at 91 %, old backups are gone, now at 58 %. Solved."),
        ("random", "sofia", 700, "Somebody left an umbrella in the small meeting room."),
        ("dev", ME, 420, "I look at the deleted documents in the search today."),
        ("alerts", "mira", 95, "Deployed xyne 4.2.1 to production."),
        ("alerts", "oncall", 41, "Bug in xyne 4.2.1: exporting a search with more than 1000 hits fails with"
         " HTTP 500 ('KeyError: cursor' in export.ts). Started at the deployment, nine customers so far."),
        ("general", "tomas", 12, "I am in the train until four, write to me if it is urgent."),
    ]  # fmt: skip
    return {
        "channels": [
            {"name": "alerts", "topic": "What broke and who looks at it", "members": ["mira", ME, "oncall"]},
            {"name": "dev", "topic": "Work on xyne and the storefront", "members": ["mira", ME, "tomas"]},
            {"name": "general", "topic": "For everybody", "members": everybody},
            {"name": "random", "topic": "Everything else", "members": everybody},
        ],
        "members": [
            {"name": name, "full_name": full, "presence": presence, "status": status}
            for name, full, presence, status in (
                ("mira", "Mira Costa", "active", ""),
                (ME, "Ona Catalan", "active", "that is you"),
                ("oncall", "On call: Dana Ruiz", "active", "on call until Friday"),
                ("sofia", "Sofia Lindt", "away", "back on Monday"),
                ("tomas", "Tomas Berg", "away", "in the train"),
            )
        ],
        "messages": [
            asdict(Message(id=f"m{number}", channel=channel, sender=sender, text=text, time=ago(minutes)))
            for number, (channel, sender, minutes, text) in enumerate(lines, 1)
        ],
    }
