"""Chat: threads, what was said and done in them, and everything a person answers there.

A turn is a part that is made here whole, at any moment; `chat.js` adds what happens after it. Whatever
models, tools and people wrote reaches the page as text, or sanitised by `markdown`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dragoman.agent import Agent
from dragoman.console.chat_events import ThreadFrames
from dragoman.console.chat_questions import (
    answer_approval,
    answer_question,
    look_up,
    show_approval,
    show_question,
)
from dragoman.console.pages import event_stream, hub_of, pages_of
from dragoman.console.submitted_form import filled
from dragoman.console.transcript import ChatTurn, turn_of
from dragoman.errors import InvalidArguments
from dragoman.hub import BoundHub
from dragoman.hub.attachments import MOST_ATTACHED, Attachment
from dragoman.hub.threads import ThreadView
from dragoman.people import find_zone
from dragoman.run import ATTACHMENTS, TIME_ZONE, Run, RunEvent

_AT_ONCE = 8  # turns; earlier ones are asked for
_MOST_THREADS = 60
_MARK = re.compile(r"([\w-]{1,100}):(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mentionable:
    """Somebody who can be written to with @."""

    agent: Agent
    tools: int


async def new_chat(request: Request) -> Response:
    return await _page(request, None)


async def show_chat(request: Request) -> Response:
    thread = await hub_of(request).threads.get(request.path_params["thread"])
    return await _page(request, thread)


async def earlier_turns(request: Request) -> Response:
    """Those before the run `before`."""
    hub = hub_of(request)
    thread = await hub.threads.get(request.path_params["thread"])
    first = await hub.runs.get(request.query_params.get("before", ""))
    turns, more = await _turns(hub, thread.thread.id, first)
    return pages_of(request).part(request, "chat/turns.html", thread=thread, turns=turns, more=more)


async def show_turn(request: Request) -> Response:
    hub = hub_of(request)
    run = await hub.runs.get(request.path_params["run"])
    turn = await _turn(hub, run, await _thumbs(hub, run.thread))
    return pages_of(request).part(request, "chat/turn.html", turn=turn)


async def follow(request: Request) -> Response:
    """What happens from `after` on: `<run>:<number>`, or `-:0` for all of the thread."""
    hub = hub_of(request)
    thread = await hub.threads.get(request.path_params["thread"])
    heard = request.headers.get("last-event-id") or request.query_params.get("after", "-:0")
    mark = _MARK.fullmatch(heard)
    if mark is None:
        raise InvalidArguments("after is <run>:<number>", hint="load the page again")
    events = hub.runs.follow_thread(thread.thread.id, (mark.group(1), int(mark.group(2))))
    frames = ThreadFrames(events)
    return event_stream(request, frames.tell(), beside=frames.hear)


async def write(request: Request) -> Response:
    """Says which thread it went to, and which run works on it."""
    async with request.form(max_files=MOST_ATTACHED, max_fields=10) as form:
        text, zone = form.get("text"), form.get("time_zone")
        files = [
            Attachment(one.filename or "", await one.read(), one.content_type)
            for one in form.getlist("file")
            if not isinstance(one, str)
        ]
    thread = request.path_params.get("thread")
    words = text if isinstance(text, str) else ""
    options = {TIME_ZONE: zone} if isinstance(zone, str) and find_zone(zone) else {}
    hub = hub_of(request)
    accepted = await hub.messages.post(words, thread=thread, options=options, attachments=files)
    return JSONResponse({"thread": accepted.run.thread, "root": accepted.run.root})


async def retry(request: Request) -> Response:
    """The same message once more."""
    hub = hub_of(request)
    before = await hub.runs.get(request.path_params["run"])
    files = [
        Attachment(one["name"], (await hub.result(one["handle"])).body, one["media_type"])
        for one in before.options.get(ATTACHMENTS, ())
    ]
    options = {name: value for name, value in before.options.items() if name == TIME_ZONE}
    accepted = await hub.messages.post(
        before.request, thread=before.thread, options=options, attachments=files
    )
    return JSONResponse({"thread": accepted.run.thread, "root": accepted.run.root})


async def stop(request: Request) -> Response:
    run = await hub_of(request).runs.cancel(request.path_params["run"])
    return JSONResponse({"thread": run.thread, "root": run.root})


async def thumb(request: Request) -> Response:
    given = (await filled(request)).text("thumb")
    value = int(given) if given in ("1", "-1", "0") else 2
    run = await hub_of(request).runs.thumb(request.path_params["run"], value)
    return pages_of(request).part(request, "chat/thumbs.html", run=run.id, thumb=value)


async def remove(request: Request) -> Response:
    await hub_of(request).threads.remove(request.path_params["thread"])
    return Response(status_code=204, headers={"hx-redirect": "/chat"})


async def choose_connectors(request: Request) -> Response:
    """One connector on or off, or all as the person's default set says."""
    hub = hub_of(request)
    thread, given = request.path_params["thread"], await filled(request)
    slug = given.text("connector")
    if given.text("set") == "default":
        view = await hub.threads.set(thread, None)
    elif given.text("is_on"):
        view = await hub.threads.add(thread, slug)
    else:
        view = await hub.threads.disable(thread, slug)
    facts = await _connectors(hub)
    return pages_of(request).part(request, "chat/connectors.html", thread=view, connectors=facts)


async def _page(request: Request, thread: ThreadView | None) -> Response:
    hub = hub_of(request)
    threads = await hub.threads.list(_MOST_THREADS)
    turns, more = await _turns(hub, thread.thread.id) if thread else ([], False)
    return pages_of(request).page(
        request,
        "chat.html",
        title=(thread.thread.title or "Untitled chat") if thread else "New chat",
        thread=thread,
        threads=threads,
        turns=turns,
        more=more,
        position=_position(turns),
        agents=await _mentionable(hub),
        present=list(dict.fromkeys(w.agent for turn in turns for w in turn.everything() if w.agent)),
        connectors=await _connectors(hub),
        model=await hub.models.choose(),
    )


async def _turns(hub: BoundHub, thread: str, first: Run | None = None) -> tuple[list[ChatTurn], bool]:
    """In order; whether there are earlier ones."""
    before = first.created_at if first else None
    runs = await hub.runs.list(thread=thread, before=before, limit=_AT_ONCE + 1)
    thumbs = await _thumbs(hub, thread)
    shown = [await _turn(hub, run, thumbs) for run in runs[:_AT_ONCE]]
    return shown[::-1], len(runs) > _AT_ONCE


async def _turn(hub: BoundHub, run: Run, thumbs: dict[str, int]) -> ChatTurn:
    root = run if run.is_root else await hub.runs.get(run.root)
    turn = turn_of(root, await _events(hub, root))
    for work in turn.everything():
        work.thumb = thumbs.get(work.run, 0)
    turn.can_keep = turn.state == "done" and await hub.recipes.is_on()
    await look_up(hub, turn)
    return turn


async def _events(hub: BoundHub, root: Run) -> Sequence[RunEvent]:
    """All of a run that has ended; of one under way those so far, and the stream has the rest."""
    if root.is_finished:
        return [event async for event in hub.runs.follow(root.id)]
    return (await hub.runs.view(root.id)).events


async def _thumbs(hub: BoundHub, thread: str) -> dict[str, int]:
    said = await hub.messages.list(thread)
    return {one.run: one.details["thumb"] for one in said if one.run and one.details.get("thumb")}


async def _mentionable(hub: BoundHub) -> list[Mentionable]:
    numbers: dict[str, int] = {}
    for tool in hub.tools.list():
        numbers[tool.connector_id] = numbers.get(tool.connector_id, 0) + 1
    slugs = {view.connector.slug: view.connector.id for view in await hub.connectors.list()}
    found: list[Mentionable] = []
    for agent in await hub.agents.list():
        ids: Sequence[str | None] = [*numbers]
        if agent.kind == "connector":
            ids = [agent.connector_id]
        elif agent.connectors is not None:
            ids = [slugs.get(slug) for slug in agent.connectors]
        if agent.status == "active":
            found.append(Mentionable(agent, sum(numbers.get(one, 0) for one in ids if one)))
    return found


async def _connectors(hub: BoundHub) -> list[Any]:
    return [view for view in await hub.connectors.list() if view.connector.kind != "native"]


def _position(turns: Sequence[ChatTurn]) -> str:
    """Where the stream begins: with the first turn that is not over, else after the last."""
    turn = next((one for one in turns if not one.is_over), turns[-1] if turns else None)
    return f"{turn.root}:{turn.number}" if turn else "-:0"


routes = [
    Route("/chat", new_chat),
    Route("/chat", write, methods=["POST"]),
    Route("/chat/turns/{run}", show_turn),
    Route("/chat/runs/{run}/stop", stop, methods=["POST"]),
    Route("/chat/runs/{run}/retry", retry, methods=["POST"]),
    Route("/chat/runs/{run}/thumb", thumb, methods=["POST"]),
    Route("/chat/approvals/{approval}", show_approval),
    Route("/chat/approvals/{approval}", answer_approval, methods=["POST"]),
    Route("/chat/questions/{question}", show_question),
    Route("/chat/questions/{question}", answer_question, methods=["POST"]),
    Route("/chat/{thread}", show_chat),
    Route("/chat/{thread}", write, methods=["POST"]),
    Route("/chat/{thread}", remove, methods=["DELETE"]),
    Route("/chat/{thread}/turns", earlier_turns),
    Route("/chat/{thread}/events", follow),
    Route("/chat/{thread}/connectors", choose_connectors, methods=["POST"]),
]
