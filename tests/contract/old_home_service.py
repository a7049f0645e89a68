"""The surroundings of the old home: the same when it was made and whenever it is opened.

A service over it, the MCP server that its connectors name, and a scripted model over real HTTP.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from product import Reply, Service, running_service

from patience import wait_until
from servers.scenarios import Call, Turn
from servers.scenarios import Reply as Said
from servers.scripted_models import open_scripted_openai

FOLDER = Path(__file__).parent / "old_home"
PATIENCE = 30.0
FACTS: dict[str, Any] = json.loads((FOLDER / "facts.json").read_text())
KEYS: dict[str, str] = FACTS["keys"]
DIGEST_OF_SHARED = ("mcp_notes_digest", "NOTES_TOKEN")
DIGEST_OF_PERSONAL = ("mcp_mail_digest", "MAIL_TOKEN")


def script(turn: Turn) -> Said:
    """What the model says: it plans, asks for a colour, sends a note, counts, or greets."""
    if "state_plan" in turn.tools and turn.number == 1:
        step = {"tool": "digest", "reason": "to see the variable"}
        return Said(tool_calls=(Call("state_plan", {"steps": [step]}),))
    if "look" in turn.user and turn.number == 2:
        return Said(tool_calls=(Call("mcp_notes_digest", {"name": "NOTES_TOKEN"}),))
    if "colour" in turn.user:
        if turn.number == 1:
            return Said(tool_calls=(Call("ask_person", {"question": "Which colour?"}),))
        return Said(text=f"I paint it {turn.result('ask_person')}.")
    if "send" in turn.user:
        if turn.number == 1:
            return Said(tool_calls=(Call("mcp_notes_send", {"text": "from a run"}),))
        return Said(text=f"Done: {turn.result('mcp_notes_send')}.")
    if "count" in turn.user and turn.number == 1:
        return Said(tool_calls=(Call("mcp_raw_progress", {"n": 2}),))
    return Said(text="Good day.")


def copy_old_home(folder: Path) -> Path:
    """As a person would restore it from a backup."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "dragoman.db")) as database:
        database.executescript((FOLDER / "dragoman.sql").read_text(encoding="utf-8"))
    for name in ("key", "token"):
        shutil.copyfile(FOLDER / name, home / name)
        (home / name).chmod(0o600)
    return home


@contextmanager
def running_old_home(home: Path, journal: Path) -> Generator[Service]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_scripted_openai(script)) as model,
        running_service(
            home,
            {
                "DRAGOMAN_MULTI_USER": "true",
                "DRAGOMAN_MODEL": "openai-chat:gpt-5.4",
                "DRAGOMAN_APPROVAL_WAIT": "0.2",
                # What is old stays: the home is older each time that it is opened.
                "DRAGOMAN_KEEP_RESULTS_DAYS": "100000",
                "DRAGOMAN_KEEP_CALLS_DAYS": "100000",
                "DRAGOMAN_KEEP_AUDIT_DAYS": "100000",
                "OPENAI_API_KEY": "a-key",
                "OPENAI_BASE_URL": model.base_url,
                "OLD_HOME_SERVER": str(FOLDER / "server.py"),
                "OLD_HOME_JOURNAL": str(journal),
            },
        ) as service,
    ):
        yield service


def answer_approval(service: Service, text: str) -> None:
    """Ann says yes to sending the note with this text."""
    asked = service.get("/api/approvals", KEYS["ann"])["approvals"]
    (approval,) = [one for one in asked if one["arguments"] == {"text": text}]
    path = f"/api/approvals/{approval['id']}/answer"
    checked(service.ask("POST", path, {"answer": "once"}, KEYS["ann"]), 200)


def answer_question(service: Service, words: str) -> None:
    """Ann answers the one question that is open."""
    (question,) = service.get("/api/questions", KEYS["ann"])["questions"]
    checked(service.ask("POST", f"/api/questions/{question['id']}", {"answer": words}, KEYS["ann"]), 200)


def run_of(service: Service, name: str) -> Any:
    """A run that waited when the home was made."""
    return service.get(f"/api/runs/{FACTS[name]}", KEYS["ann"])["run"]


def call(service: Service, token: str, tool: str, **arguments: Any) -> Any:
    reply = service.ask("POST", "/api/call", {"tool": tool, "arguments": arguments}, token)
    return checked(reply, 200)


def checked(reply: Reply, status: int) -> Any:
    assert reply.status == status, reply.text
    return reply.value


def until(holds: Callable[[], bool]) -> None:
    """Waits for a fact about another process."""
    wait_until(holds, PATIENCE)
