"""The same trouble, asked about by every door: each tells what to do in its own words and in no other's."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from api.live import Live, open_service
from dragoman import ConnectorQuery, DragomanError

pytestmark = pytest.mark.anyio
COMMAND, PYTHON, REST = r"\bdragoman [a-z]", r"\bhub\.[a-z]", r"\b[A-Z]+ /api/"
NOWHERE: dict[str, Any] = {"url": "http://127.0.0.1:9/mcp", "request_timeout": 5}
# What a door must say of `enable the connector raw`, and what of the others' words it must not.
ENABLED = {
    "library": 'hub.connectors.enable("raw")',
    "rest": "POST /api/connectors/raw/enable",
    "command": "dragoman connectors enable raw",
    "mcp": "enable the connector raw",
    "console": "enable the connector raw",
}
FOREIGN = {
    "library": (COMMAND, REST),
    "rest": (COMMAND, PYTHON),
    "command": (PYTHON, REST),
    "mcp": (COMMAND, PYTHON, REST),
    "console": (COMMAND, PYTHON, REST),
}


def check(door: str, *texts: str) -> None:
    told = "\n".join(texts)
    for words in FOREIGN[door]:
        assert not re.search(words, told), re.search(f".*{words}.*", told)


class Trouble:
    """A connector that is disabled, one that waits for a secret of its user, and a run without a model."""

    def __init__(self, live: Live, thread: str, run: str) -> None:
        self.live, self.thread, self.run = live, thread, run

    async def rest(self, **headers: str) -> list[str]:
        """What REST tells of all of it."""
        asked = [
            ("GET", f"/api/threads/{self.thread}/tools", None),
            ("GET", f"/api/threads/{self.thread}/messages", None),
            ("GET", "/api/credentials/mail", None),
            ("GET", "/api/connectors/mail", None),
            ("POST", "/api/connectors/raw/query", {"query": "hello"}),
            ("POST", "/api/connectors/raw/connect", None),
            ("POST", "/api/call", {"tool": "mcp_mail_send"}),
            ("GET", f"/api/runs/{self.run}", None),
            ("GET", f"/api/runs/{self.run}/timeline", None),
            ("GET", f"/api/runs/{self.run}/events", None),
            ("GET", "/api/agents/nobody", None),
            ("POST", "/api/code", {"code": "call_tool('nothing')"}),
        ]
        replies = [await self.live.ask(*one, **headers) for one in asked]
        assert not [reply.status for reply in replies if reply.status >= 500]
        return [reply.body.decode() for reply in replies]


@asynccontextmanager
async def open_trouble(home: Path) -> AsyncGenerator[Trouble]:
    async with open_service(home, model="openai:gpt-5") as live:
        hub = live.hub
        await hub.connectors.add("raw", **NOWHERE, enabled=False)
        await hub.connectors.add("mail", **NOWHERE, personal=["auth"])
        thread = (await hub.threads.create()).thread.id
        run = await hub.ask("hello", thread=thread)
        assert run.status == "failed"
        yield Trouble(live, thread, run.id)


@pytest.fixture(autouse=True)
def no_model_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


async def test_the_library_is_told_python(tmp_path: Path) -> None:
    async with open_trouble(tmp_path) as trouble:
        hub, thread = trouble.live.hub, trouble.thread
        missing = {one.connector: one.hint or "" for one in (await hub.threads.tools(thread)).missing}
        credential = await hub.credentials.get("mail")
        query = await hub.queries.ask(ConnectorQuery(connector_id="raw", query="hello"))
        run = await hub.runs.get(trouble.run)
        events = [event.data async for event in hub.runs.follow(run.id)]
        view, timeline = await hub.runs.view(run.id), await hub.runs.timeline(run.id)
        with pytest.raises(DragomanError) as refused:
            await hub.connectors.connect("raw")
        output = await hub.call("mcp_mail_send")
    assert missing["raw"] == query["error"]["hint"] == refused.value.hint == ENABLED["library"]
    assert missing["mail"] == credential.hint == 'hub.credentials.set("mail", {"auth": "…"})'
    assert run.error is not None
    assert 'hub.models.set_provider("openai"' in (run.error.hint or "")
    assert str(run.error.hint) in [event["error"]["hint"] for event in events if event.get("error")]
    texts = (repr(query), *(text for text in missing.values()), run.error.hint or "")
    check(
        "library",
        *texts,
        repr(events),
        repr(view.events),
        repr(timeline.moments),
        repr(output.error and output.error.hint),
    )


async def test_rest_is_told_requests_and_the_command_line_commands(tmp_path: Path) -> None:
    async with open_trouble(tmp_path) as trouble:
        over_rest = await trouble.rest()
        by_command = await trouble.rest(**{"dragoman-hints": "command"})
        refused = await trouble.live.ask("GET", "/api/tools", Authorization="Bearer wrong")
    for door, texts in (("rest", [*over_rest, refused.body.decode()]), ("command", by_command)):
        assert sum(ENABLED[door] in text for text in texts) == 3
        check(door, *texts)
    assert "PUT /api/credentials/mail" in over_rest[2]
    assert "PUT /api/models/providers/openai" in over_rest[7]
    assert "PUT /api/models/providers/openai" in over_rest[9]


async def test_mcp_clients_and_what_models_read_are_told_plain_words(tmp_path: Path) -> None:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

    async def told(live: Live, method: str, params: dict[str, Any], **more: str) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await live.ask("POST", "/mcp?view=search", message, **headers, **more)

    async with open_trouble(tmp_path) as trouble:
        live = trouble.live
        client = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        session = (await told(live, "initialize", client)).headers["Mcp-Session-Id"]
        asked = {"connector_id": "raw", "query": "hello"}
        texts = [
            (
                await told(
                    live, "tools/call", {"name": name, "arguments": given}, **{"Mcp-Session-Id": session}
                )
            ).body.decode()
            for name, given in (
                ("query_mcp_connector", asked),
                ("call_tool", {"name": "mcp_mail_send", "arguments": {}}),
                ("call_tool", {"name": "mcp_raw_send", "arguments": {}}),
                ("nothing", {}),
            )
        ]
        refused = await told(live, "tools/list", {}, Authorization="Bearer wrong")
        [*_, last] = await live.hub.messages.list(trouble.thread)
    assert ENABLED["mcp"] in texts[0]
    assert "give the provider openai its key" in last.text
    check("mcp", *texts, refused.body.decode(), last.text)


async def test_the_console_is_told_plain_words_with_links(tmp_path: Path) -> None:
    async with open_trouble(tmp_path) as trouble:
        live = trouble.live
        link = f"{live.url}/sign-in?code={await live.doors.sign_in_code()}"
        async with live.session.get(link, allow_redirects=False) as response:
            cookie = {"Cookie": response.headers["Set-Cookie"].partition(";")[0]}
        paths = [f"/chat/{trouble.thread}", f"/runs/{trouble.run}", "/connectors/mail", "/connectors/raw"]
        paths += ["/credentials", "/agents/nobody", "/tools?words=nothing", "/settings"]
        pages: dict[str, str] = {}
        for path in paths:
            async with live.session.get(live.url + path, headers=cookie) as response:
                pages[path] = await response.text()
    assert "give the provider openai its key" in pages[f"/runs/{trouble.run}"]
    assert '<a href="/settings?tab=models">Models</a>' in pages[f"/runs/{trouble.run}"]
    assert '<a href="/agents">Agents</a>' in pages["/agents/nobody"]
    check("console", *pages.values())
