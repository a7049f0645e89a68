"""Sample servers as connectors, added by the command."""

import sys
from pathlib import Path

from command_line import Command

from servers.samples import SERVERS


def add_email(dragoman: Command, data: Path) -> None:
    server = ["--", sys.executable, str(SERVERS / "email_server.py"), "--mailbox", str(data / "mailbox.json")]
    data.mkdir(parents=True, exist_ok=True)
    added = dragoman("connectors", "add", "email", "--mount", f"{data}:rw", *server)
    assert added.code == 0, added.err


def add_tracker(dragoman: Command, data: Path) -> None:
    server = ["--", sys.executable, str(SERVERS / "tracker_server.py"), "--data", str(data)]
    data.mkdir(parents=True, exist_ok=True)
    added = dragoman("connectors", "add", "tracker", "--mount", f"{data}:rw", *server)
    assert added.code == 0, added.err


def sent_emails(data: Path) -> str:
    return (data / "mailbox.json").read_text() if (data / "mailbox.json").exists() else ""
