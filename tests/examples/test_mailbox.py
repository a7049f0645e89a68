"""The mailbox on disk: seeded once, shared by processes, never half-written."""

import json
import subprocess
import sys
from pathlib import Path

from mailboxes import OWNER, Mailbox
from patience import patient
from servers.samples import SERVERS


def test_a_new_mailbox_begins_with_six_messages_newest_first(tmp_path: Path) -> None:
    inbox = Mailbox(tmp_path / "deep" / "mail.json").list_inbox()
    assert len(inbox) == 6
    assert [message.date for message in inbox] == sorted((message.date for message in inbox), reverse=True)
    assert {message.unread for message in inbox} == {True, False}


def test_what_is_sent_is_kept_and_what_is_sent_to_the_owner_arrives(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "mail.json")
    mailbox.send(to=["ann@example.com"], subject="One", body="", cc=[], bcc=[])
    mailbox.send(to=["ann@example.com"], subject="Two", body="", cc=[OWNER.upper()], bcc=["eve@example.com"])
    again = Mailbox(tmp_path / "mail.json")
    assert [message.subject for message in again.list_sent()] == ["Two", "One"]
    newest = again.list_inbox()[0]
    assert (newest.subject, newest.unread, newest.bcc) == ("Two", True, [])
    assert len(again.list_inbox()) == 7


def test_two_processes_lose_no_message(tmp_path: Path) -> None:
    path = tmp_path / "mail.json"
    script = (
        "import sys; from pathlib import Path; from mailboxes import Mailbox;"
        "box = Mailbox(Path(sys.argv[1]));"
        "to = ['a@example.com'];"
        "[box.send(to=to, subject=f'{sys.argv[2]}-{n}', body='', cc=[], bcc=[]) for n in range(25)]"
    )
    senders = [
        subprocess.Popen([sys.executable, "-c", script, str(path), name], cwd=SERVERS)
        for name in ("a", "b", "c")
    ]
    assert [sender.wait(patient(60)) for sender in senders] == [0, 0, 0]
    subjects = {message.subject for message in Mailbox(path).list_sent()}
    assert subjects == {f"{name}-{number}" for name in ("a", "b", "c") for number in range(25)}
    assert len(json.loads(path.read_text())["messages"]) == 81
    assert sorted(item.name for item in tmp_path.iterdir()) == ["mail.json", "mail.json.lock"]
