"""`query_mcp_connector` for outside clients: progress while its run lasts, then the answer as a structure.

What the run asks of a person meanwhile is answered in Dragoman: the client is only told of it, and no client
is kept waiting for long.
"""

from collections.abc import Mapping
from typing import Any

from dragoman.agents.connector_query import MOST_TOOLS, NAME, ConnectorQuery
from dragoman.errors import InvalidArguments
from dragoman.hub import BoundHub
from dragoman.run import RunEvent
from dragoman.tool import ClientChannel
from dragoman.web.encoding import encode

_TEXT = {"type": "string"}
_LONGEST = 200
_RUN = "run"
ENTRY: Mapping[str, Any] = {
    "name": NAME,
    "description": "Hands a whole job to the agent of one connector: it plans, calls tools and answers with"
    " sources. A person may have to approve steps in Dragoman.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "connector_id": _TEXT,
            "query": {**_TEXT, "description": "the job, with all it needs to know"},
            "context": _TEXT,
            "max_tools": {"type": "integer", "minimum": 1, "maximum": MOST_TOOLS, "default": 10},
            "plan_only": {"type": "boolean"},
            _RUN: {**_TEXT, "description": "of a call before that waited for a person: has its answer"},
        },
        "required": ["connector_id", "query"],
    },
}


async def ask(hub: BoundHub, arguments: Mapping[str, Any], channel: ClientChannel | None) -> dict[str, Any]:
    """Raises `InvalidArguments`; whatever else goes wrong is in the answer."""

    async def heard(event: RunEvent) -> None:
        if channel is not None and (words := _words(event)):
            await channel.progress(event.number, None, words[:_LONGEST])

    wants_progress = channel is not None and channel.wants_progress
    run = arguments.get(_RUN) or None
    if not isinstance(run, str | None):
        raise InvalidArguments("run must be the id of a run", hint="leave it out to begin one")
    asked = {name: value for name, value in arguments.items() if name != _RUN}
    answer = await hub.queries.ask(
        ConnectorQuery.read(asked),
        heard if wants_progress else None,
        patience=None if channel is None else channel.approval_wait,
        run=run,
    )
    told = [{"type": "text", "text": encode(answer).decode()}]
    result: dict[str, Any] = {"content": told, "structuredContent": answer}
    return {**result, "isError": True} if answer["status"] == "error" else result


def _words(event: RunEvent) -> str:
    """What a person who waits is told; empty for what would not interest them."""
    data = event.data
    match event.kind:
        case "run.started" | "run.resumed":
            return f"{event.agent} is at work"
        case "plan.stated":
            return "plan: " + ", ".join(str(step.get("tool")) for step in data["steps"])
        case "notice":
            return str(data["text"])
        case "call.started" if data["kind"] == "tool":
            return f"{data['title']} …"
        case "call.progress" if data.get("message"):
            return str(data["message"])
        case "approval.requested":
            return "waits for a person to approve a call in Dragoman"
        case "question.asked":
            return f"waits for an answer in Dragoman: {data['text']}"
        case _:
            return ""
