"""What a call and its server say to each other is shown to who asks, without secrets and past no hook."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.live import open_service
from dragoman.tool import ExchangedMessage
from openapi.echo import document, open_echo, operation
from servers.hubs import open_hub, quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio
CANARY = "canary-7f3a9c-41b2"


def _told(messages: list[ExchangedMessage]) -> list[tuple[str, str]]:
    def kind(message: Any) -> str:
        return next(name for name in ("method", "result", "error", "request", "response") if name in message)

    return [(one.direction, one.message.get("method") or kind(one.message)) for one in messages]


async def test_requests_progress_and_answers_are_shown_without_secrets(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("box", **quick(**stdio("--era", "2025")), env={"TOKEN": CANARY})
        messages: list[ExchangedMessage] = []
        output = await hub.call(
            "mcp_box_progress", {"n": 2}, on_message=messages.append, on_progress=lambda one: None
        )
        assert output.ok
        assert _told(messages) == [
            ("sent", "tools/call"),
            ("received", "notifications/progress"),
            ("received", "notifications/progress"),
            ("received", "result"),
        ]
        assert messages[0].message["params"]["arguments"] == {"n": 2}
        assert messages[0].message["id"] == messages[-1].message["id"]

        messages.clear()
        # What the server asks belongs to the only call that waits on this wire.
        assert (await hub.call("mcp_box_ask_client", on_message=messages.append)).ok
        assert _told(messages) == [
            ("sent", "tools/call"),
            ("received", "ping"),
            ("sent", "result"),
            ("received", "result"),
        ]

        messages.clear()
        assert (await hub.call("mcp_box_echo", {"text": f"it is {CANARY}"}, on_message=messages.append)).ok
        assert (await hub.call("mcp_box_environment", on_message=messages.append)).ok
        assert len(messages) == 4
        assert CANARY not in repr(messages)

        # Hooks decide what the caller sees: past them nothing is shown, and nothing where nobody asks.
        await hub.people.update_workspace("local", hooks=["secrets"])
        messages.clear()
        assert (await hub.call("mcp_box_echo", {"text": "x"}, on_message=messages.append)).ok
        assert messages == []


async def test_a_service_of_http_is_shown_without_its_key_and_by_rest_as_events(tmp_path: Path) -> None:
    async with open_echo() as echo, open_service(tmp_path) as live:
        made = document(
            {"/thing": {"get": operation("get")}},
            components={"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}}},
            security=[{"key": []}],
        )
        echo.serve("/openapi.json", made)
        await live.hub.connectors.add("shop", kind="openapi", openapi=echo.url, **quick(api_key=CANARY))
        body = {"tool": "mcp_shop_get", "messages": True}
        reply = await live.ask("POST", "/api/call", body, Accept="text/event-stream")
        whole, kinds, told = reply.body.decode(), list[str](), list[Any]()
        for block in whole.strip().split("\n\n"):
            facts = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in facts:
                kinds.append(facts["event"])
                told.append(json.loads(facts["data"]))
        assert kinds == ["call.message", "call.message", "call.finished"]
        assert told[0]["message"]["request"] == f"GET {echo.url}/thing"
        assert told[1]["message"]["response"].startswith("200")
        assert told[-1]["ok"]
        assert CANARY not in whole
        wrong = await live.ask("POST", "/api/call", {"tool": "mcp_shop_get", "messages": "all"})
        assert wrong.status == 422
