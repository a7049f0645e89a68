"""A hub in which much has happened, so that every page of the console has something to show."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from console.browsing import Console
from console.speaking import Speaker
from dragoman.console.places import PLACES
from dragoman.tool import Annotations
from logins.client_flow import Client, Person
from servers.hubs import quick, until
from servers.samples import open_tasks, sample_program

SETTINGS: dict[str, Any] = {
    "model": "speaker",
    "multi_user": True,
    "registry_url": "http://127.0.0.1:9",
    "rollout_share": 0.0,  # the assistant calls tools by itself
}
_ANSWER = """Here is what I found.

| Issue | State | Owner |
|---|---|---|
| Login fails on Safari | open | Ada |
| Slow export | **closed** | Bob |

1. Ask Ada about the first.
2. Run `export --fast` for the second.

> Nothing else is open.

```python
print("done")
```
"""


@asynccontextmanager
async def furnished(console: Console, data: Path) -> AsyncGenerator[dict[str, str]]:
    """Every page by a name: those of the menu, and what lies behind them."""
    speaker = Speaker()
    speaker.install(console.hub)
    _add_tools(console)
    async with open_tasks(data) as (tasks, _):
        # Programs with an address as people have them: this is what pictures show.
        for name in ("email", "tracker", "chat"):
            await console.hub.connectors.add(name, **sample_program(name, data))
        await console.hub.connectors.add("tasks", kind="openapi", openapi=tasks, **quick())
        await _add_connectors(console)
        report = {"tool": "tracker__create_issue", "name": "report", "title": "Report a problem"}
        await console.hub.bundles.create("support", [report, "email"], title="Support")
        await _add_people(console)
        thread, run = await _work(console, speaker)
        yield {**_menu(), **_behind(thread, run), **await _add_clients(console)}


def _menu() -> dict[str, str]:
    return {place.path.strip("/") or "overview": place.path for place in PLACES}


def _behind(thread: str, run: str) -> dict[str, str]:
    return {
        "chat_thread": f"/chat/{thread}",
        "connectors_new": "/connectors/new",
        "connectors_new_openapi": "/connectors/new?by=openapi",
        "connectors_new_paste": "/connectors/new?by=paste",
        "connector": "/connectors/tracker",
        "connector_broken": "/connectors/broken",
        "connector_edit": "/connectors/tracker/edit",
        "tools_found": "/tools?q=send+an+email",
        "tool": "/tools/mcp_email_send-email",
        "tool_native": "/tools/plan_trip",
        "bundle": "/bundles/support",
        "agents_new": "/agents/new",
        "agent": "/agents/triager",
        "agent_assistant": "/agents/assistant",
        "run": f"/runs/{run}",
        "approvals_answered": "/approvals?tab=answered",
        "approvals_allowed": "/approvals?tab=allowed",
        "log_calls": "/log/calls",
        "settings_models": "/settings?tab=models",
        "settings_workspace": "/settings?tab=workspace",
        "settings_retention": "/settings?tab=retention",
        "settings_installation": "/settings?tab=installation",
        "fault": "/runs/none",
    }


def _add_tools(console: Console) -> None:
    hub = console.hub

    @hub.tool(annotations=Annotations(destructive=True))
    def burn(what: str) -> str:
        """Burns something for good."""
        return f"{what} is ashes"

    @hub.tool
    def move(what: str, where: str = "the cellar") -> str:
        """Moves something to another place."""
        return f"{what} is in {where}"

    @hub.tool
    def plan_trip(
        city: str, days: int = 2, hotels: list[str] | None = None, budget: float | None = None
    ) -> str:
        """Plans a trip."""
        raise ValueError(f"no train goes to {city}")

    assert burn
    assert move
    assert plan_trip


async def _add_connectors(console: Console) -> None:
    connectors = console.hub.connectors
    script = "import sys; sys.stderr.write('cannot open the database\\nis it there?\\n'); sys.exit(3)"
    await connectors.add(
        "broken", **quick(command=sys.executable, args=["-c", script]), description="Cannot start."
    )
    refused = quick(
        url="http://127.0.0.1:9/mcp", isolation="user", personal=["auth"], auth={"kind": "bearer"}
    )
    await connectors.add("crm", **refused, connect=False)
    await connectors.add("idle", **quick(url="http://127.0.0.1:9/mcp"), enabled=False)


async def _add_clients(console: Console) -> dict[str, str]:
    """One that was let in, with limits, and one that asks."""
    client, other = Client(console.live), Client(console.live)
    await client.register(client_name="Cursor")
    await client.log_in(await Person.signed_in(console.live))
    (key,) = await console.hub.clients.list()
    await console.hub.clients.update(key.id, limits={"calls_per_hour": 100})
    await other.register(client_name="Claude Code")
    return {"client": f"/clients/{key.id}/settings", "consent": f"/oauth/authorize?{other.query()}"}


async def _add_people(console: Console) -> None:
    await console.add_user("ada", role="admin")
    await console.add_user("bob")
    workspace = console.hub.caller.workspace
    limits = {"calls_per_hour": 500, "cost_per_day": 20}
    await console.live.ask("PATCH", f"/api/workspaces/{workspace}", {"limits": limits})
    facts = {"name": "laptop", "scopes": ["read", "call"]}
    assert (await console.live.ask("POST", "/api/keys", facts)).status == 201
    await console.hub.agents.create(
        "triager",
        description="Sorts new issues.",
        instructions="Look at each new issue, set its labels, and say who should look at it.",
        connectors=("tracker", "chat"),
    )


async def _work(console: Console, speaker: Speaker) -> tuple[str, str]:
    """A thread with answers, calls, a failure, and something that waits for a person."""
    hub = console.hub
    for arguments in ({}, {"state": "open"}):
        await hub.call("mcp_tracker_list_issues", arguments)
    await hub.call("plan_trip", {"city": "Atlantis"})
    speaker.say(_ANSWER)
    speaker.end()
    posted = await hub.messages.post("word: which issues are open?")
    thread = posted.run.thread
    await hub.runs.finished(posted.run)
    call = f"call mcp_tracker_list_issues {json.dumps({})}"
    called = await hub.messages.post(call, thread=thread)
    await hub.runs.finished(called.run)
    await hub.messages.post(f"call move {json.dumps({'what': 'the chair', 'where': 'the garden'})}")
    await until(lambda: _waits(console, 1))
    (first,) = await hub.approvals.list()
    await hub.approvals.answer(first.approval.id, "always")
    other = await hub.messages.post(f"call burn {json.dumps({'what': 'all the letters'})}", thread=thread)
    await until(lambda: _waits(console, 1))
    asked = {"question": "Which **one** of the two do you mean?"}
    await hub.messages.post(f"call ask_person {json.dumps(asked)}")
    await until(lambda: _is_asked(console), within=20)
    assert other
    return thread, called.run.id


async def _is_asked(console: Console) -> bool:
    return bool(await console.hub.runs.questions())


async def _waits(console: Console, number: int) -> bool:
    return len(await console.hub.approvals.list()) >= number
