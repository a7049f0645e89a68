"""The surroundings of the old home: the same when it was made and whenever it is opened.

A service over it, the MCP server that its connectors name, and a scripted model over real HTTP.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from product import Reply, Service, running_service

from servers.scenarios import Call, Turn
from servers.scenarios import Reply as Said
from servers.scripted_models import open_scripted_openai

FOLDER = Path(__file__).parent / "old_home"
PATIENCE = 30.0
DIGEST_OF_SHARED = ("mcp_notes_digest", "NOTES_TOKEN")
DIGEST_OF_PERSONAL = ("mcp_mail_digest", "MAIL_TOKEN")


def script(turn: Turn) -> Said:
    """What the model says: it asks for a colour, sends a note, or greets."""
    if "colour" in turn.user:
        if turn.number == 1:
            return Said(tool_calls=(Call("ask_person", {"question": "Which colour?"}),))
        return Said(text=f"I paint it {turn.result('ask_person')}.")
    if "send" in turn.user:
        if turn.number == 1:
            return Said(tool_calls=(Call("mcp_notes_send", {"text": "from a run"}),))
        return Said(text=f"Done: {turn.result('mcp_notes_send')}.")
    return Said(text="Good day.")


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


def call(service: Service, token: str, tool: str, **arguments: Any) -> Any:
    reply = service.ask("POST", "/api/call", {"tool": tool, "arguments": arguments}, token)
    return checked(reply, 200)


def checked(reply: Reply, status: int) -> Any:
    assert reply.status == status, reply.text
    return reply.value


def until(holds: Callable[[], bool]) -> None:
    """Waits for a fact about another process."""
    limit = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < limit, "it did not come true in time"
        time.sleep(0.05)
