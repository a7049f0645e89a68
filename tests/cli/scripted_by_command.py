"""A scripted language model for commands, over real HTTP."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest
from anyio.from_thread import start_blocking_portal

from servers.scenarios import Call, Reply, Script, Turn
from servers.scripted_models import ScriptedServer, open_scripted_openai


@contextmanager
def scripted(script: Script, monkeypatch: pytest.MonkeyPatch) -> Generator[ScriptedServer]:
    """A model provider for processes that begin within."""
    opened = open_scripted_openai(script)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("DRAGOMAN_MODEL", "openai-chat:gpt-5")
        yield server


def sending(turn: Turn) -> Reply:
    """Sends one e-mail to Bob, and says so."""
    if turn.number > 1:
        return Reply(text="It is done.")
    arguments = {"to": "bob@example.com", "subject": "Hello", "body": "See you"}
    return Reply(tool_calls=(Call("mcp_email_send-email", arguments),))
