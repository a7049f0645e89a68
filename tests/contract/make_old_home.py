"""Makes tests/contract/old_home: drives a service of the code on PYTHONPATH, stops it and keeps its home.

    PYTHONPATH=TREE/src:tests python tests/contract/make_old_home.py

Not part of the suite. A home is made once, by the code of its time, and never again: see its README.
"""

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from old_home_service import DIGEST_OF_PERSONAL, FOLDER, call, checked, running_old_home, until
from product import Service

NEVER = "2999-01-01 00:00:00.000000"
SCOPES = ["read", "call", "manage", "approve", "admin"]

SECRETS = {"shared": "notes-token-1", "personal": "mail-token-of-ann", "remote": "bearer-of-boss"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with running_old_home(home, Path(folder) / "journal") as service:
            facts = furnish(service)
        keep(home, facts)


def furnish(service: Service) -> dict[str, Any]:
    """Everything by REST, as people and programs do it."""
    facts: dict[str, Any] = {
        "keys": {},
        "secrets": SECRETS,
    }

    def made(path: str, token: str | None = None, status: int = 201, **body: Any) -> Any:
        return checked(service.ask("POST", path, body, token), status)

    made("/api/workspaces", name="acme")
    for workspace, user, role in ((None, "boss", "admin"), (None, "ann", "member"), ("acme", "eve", "admin")):
        made("/api/users", name=user, role=role, workspace=workspace)
        key = made("/api/keys", name=f"of {user}", user=user, scopes=SCOPES, workspace=workspace)
        facts["keys"][user] = key["key"]
    ann = facts["keys"]["ann"]
    reading = made("/api/keys", name="reads", user="ann", scopes=["read"])
    agent = made("/api/keys", name="agent", user="ann", scopes=["read", "call"], way="agent")
    revoked = made("/api/keys", name="revoked", user="ann")
    checked(service.ask("DELETE", f"/api/keys/{revoked['id']}", token=ann), 200)
    facts["keys"] |= {"reads": reading["key"], "agent": agent["key"], "revoked": revoked["key"]}

    journal = {"OLD_HOME_JOURNAL": "${OLD_HOME_JOURNAL}"}
    # So it works on any machine: the Python that runs Dragoman comes first on the PATH of its children, and
    # where the server lies is told by a variable.
    command: dict[str, Any] = {"command": "python", "args": ["-S", "-E", "${OLD_HOME_SERVER}"]}
    env = {**journal, "NOTES_TOKEN": facts["secrets"]["shared"]}
    made("/api/connectors", name="notes", shared=True, description="Notes", env=env, **command)
    made("/api/connectors", name="mail", shared=True, env=journal, personal=["env:MAIL_TOKEN"], **command)
    bearer = facts["secrets"]["remote"]
    made(
        "/api/connectors",
        facts["keys"]["boss"],
        name="remote",
        url="https://remote.example/mcp",
        bearer=bearer,
        connect=False,
    )
    values = {"values": {"env:MAIL_TOKEN": facts["secrets"]["personal"]}}
    checked(service.ask("PUT", "/api/credentials/mail", values, ann), 200)
    tool, variable = DIGEST_OF_PERSONAL
    assert call(service, ann, tool, name=variable)["ok"]

    made("/api/agents", ann, name="clerk", instructions="Answer briefly.", connectors=["notes"])
    greeting = message(service, ann, "hello there")
    again = message(service, ann, "hello again", greeting["thread"])
    assert again["status"] == "done"
    painting = message(service, ann, "which colour shall it be")
    sending = message(service, ann, "send the note")
    assert painting["status"] == sending["status"] == "waiting"

    pending = call(service, facts["keys"]["agent"], "mcp_notes_send", text="from a call")
    assert pending["error"]["code"] == "approval_pending"
    denied = service.ask("POST", "/api/connectors/notes/disable", {}, ann)
    assert denied.status == 403, denied.text
    until(lambda: len(service.get("/api/approvals", ann)["approvals"]) == 2)
    return facts | {
        "thread": greeting["thread"],
        "painting": painting["id"],
        "sending": sending["id"],
    }


def message(service: Service, key: str, text: str, thread: str | None = None) -> Any:
    """The run of a message, once it has ended or waits for a person."""
    path = f"/api/threads/{thread}/messages" if thread else "/api/messages"
    reply = service.ask("POST", f"{path}?wait=true", {"text": text}, key)
    assert reply.status in (200, 202), reply.text
    return reply.value["run"]


def keep(home: Path, facts: dict[str, Any]) -> None:
    """The database as SQL, with the key that its secrets are sealed with and the operator's token."""
    with closing(sqlite3.connect(home / "dragoman.db")) as database:
        # The one change by hand: what waits for a person would be over after a day.
        for table in ("approvals", "questions"):
            database.execute(f"UPDATE {table} SET expires_at = ?", (NEVER,))
        database.commit()
        lines = list(database.iterdump())
    (FOLDER / "dragoman.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("key", "token"):
        shutil.copyfile(home / name, FOLDER / name)
    (FOLDER / "facts.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
