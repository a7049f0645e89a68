"""`/log`: what happens in the hub, as it happens, and the last calls. Nothing of it is kept here."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, cast

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.formatting import pretty
from dragoman.console.pages import duration, event_stream, hub_of, is_part, pages_of
from dragoman.events import Event
from dragoman.names import dotted_name
from dragoman.web.server_sent_events import event_frame

_MOST_CALLS = 100
GROUPS = {
    "call": "calls of tools",
    "run": "runs and messages",
    "connector": "connectors",
    "tools": "tools",
    "approval": "approvals and questions",
    "other": "everything else",
}
_GROUP_OF = {"message": "run", "thread": "run", "question": "approval", "credential": "connector"}


async def show(request: Request) -> Response:
    return pages_of(request).page(
        request, "log.html", title="Live log", groups=GROUPS, tab="events", **_tabs()
    )


async def show_calls(request: Request) -> Response:
    facts: dict[str, Any] = {
        "calls": await hub_of(request).calls(_MOST_CALLS),
        "only_errors": bool(request.query_params.get("errors")),
        "pretty": pretty,
    }
    if is_part(request):
        return pages_of(request).part(request, "log/calls.html", **facts)
    return pages_of(request).page(request, "log/show.html", title="Live log", tab="calls", **_tabs(), **facts)


async def follow(request: Request) -> Response:
    return event_stream(request, _frames(request))


async def _frames(request: Request) -> AsyncIterator[bytes]:
    events = hub_of(request).events()
    number = 0
    async with aclosing(cast("AsyncGenerator[Event]", events)) as told:
        async for event in told:
            number += 1
            yield event_frame(orjson.dumps(line_of(event)), mark=str(number))


def line_of(event: Event) -> Mapping[str, Any]:
    """What a page shows of an event: plain texts, and what they are about to choose by."""
    first = event.kind.partition(".")[0]
    group = _GROUP_OF.get(first, first)
    return {
        "time": event.time,
        "kind": event.kind,
        "group": group if group in GROUPS else "other",
        "tone": _tone(event),
        "text": _sentence(event),
        "data": pretty({"connector": event.connector, **event.data} if event.connector else event.data),
    }


def _tone(event: Event) -> str:
    data = event.data
    word = str(data.get("state") or data.get("status") or "")
    if data.get("ok") is False or word in ("error", "failed", "needs_auth") or event.kind == "events.lost":
        return "bad"
    if data.get("ok") or word in ("connected", "done"):
        return "good"
    waits = word in ("reconnecting", "connecting", "waiting")
    return "warn" if waits or event.kind in ("approval.requested", "question.asked") else ""


_STATES = {"error": "failed", "needs_auth": "needs a sign-in", "disabled": "is off"}
_AUTHORS = {"person": "a person", "agent": "an agent", "system": "Dragoman"}


def _sentence(event: Event) -> str:
    data, connector = event.data, event.connector or ""
    tool = dotted_name(str(data.get("tool") or ""))
    match event.kind:
        case "call.started":
            return f"{tool} began"
        case "call.finished":
            how = "is done" if data.get("ok") else f"failed: {data.get('code')}"
            return f"{tool} {how} after {duration(data.get('duration_ms'))}"
        case "connector.state":
            cause = f": {data['cause']}" if data.get("cause") else ""
            state = str(data.get("state"))
            return f"{connector} {_STATES.get(state, f'is {state}')}{cause}"
        case "run.changed":
            return f"the run of {data.get('agent') or 'several'} is {data.get('status')}"
        case "message.added":
            author = str(data.get("author"))
            return f"{_AUTHORS.get(author, author)} wrote in a chat"
        case "events.lost":
            return f"{data.get('count')} events came faster than they could be shown"
        case _:
            told = [str(data[one]) for one in ("name", "agent", "what", "action") if data.get(one)]
            return " ".join(word for word in (connector, tool, *told) if word)


def _tabs() -> dict[str, Any]:
    return {"tabs": {"events": ("/log", "Events"), "calls": ("/log/calls", "Last calls")}}


routes = [
    Route("/log", show),
    Route("/log/calls", show_calls),
    Route("/log/events", follow),
]
