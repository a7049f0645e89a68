"""Chat: threads, what was said and done in them, and everything a person answers there.

A turn is a part that is made here whole, at any moment; `chat.js` adds what happens after it. Whatever
models, tools and people wrote reaches the page as text, or sanitised by `markdown`.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from urllib.parse import quote, urlencode
from zipfile import ZIP_DEFLATED, ZipFile

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dragoman.agent import ASSISTANT, Agent
from dragoman.console.chat_events import ThreadFrames
from dragoman.console.chat_questions import (
    answer_approval,
    answer_question,
    look_up,
    show_approval,
    show_question,
)
from dragoman.console.many_at_once import do_to_many, told_of_many
from dragoman.console.pages import event_stream, hub_of, pages_of
from dragoman.console.submitted_form import filled
from dragoman.console.thread_list import SORTS, keep_sort, page_of
from dragoman.console.transcript import ChatTurn, copied_turns, pretty, turn_of
from dragoman.errors import InvalidArguments, NotFound
from dragoman.hub import BoundHub
from dragoman.hub.attachments import MOST_ATTACHED, Attachment
from dragoman.hub.connectors import ConnectorView
from dragoman.hub.threads import ThreadView
from dragoman.hub.tool_media import MEDIA_TYPES
from dragoman.people import find_zone
from dragoman.run import ATTACHMENTS, COPIED, TIME_ZONE, Run, RunEvent
from dragoman.store.records import AcceptedRun

_AT_ONCE = 8  # turns; earlier ones are asked for
_UNDO = 10.0  # seconds in which a deleted chat can be brought back
_MOST_AGENTS = 40  # that are told at once; more are searched for
_MOST_CHOSEN = 200  # chats that something is done to at once
_MOST_NAMED = 6  # connectors and agents that a blank chat names
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


async def list_threads(request: Request) -> Response:
    """The next ones, or those that were searched for."""
    asked = request.query_params
    response = pages_of(request).part(
        request,
        "chat/threads.html",
        page=await page_of(request),
        id=asked.get("open", ""),
        heading=asked.get("heading", ""),
    )
    keep_sort(request, response)
    return response


async def list_agents(request: Request) -> Response:
    """Those whose names fit what is typed."""
    agents, has_more = await _mentionable(hub_of(request), request.query_params.get("q", "")[:100])
    return pages_of(request).part(request, "chat/agents.html", agents=agents, has_more=has_more)


async def list_models(request: Request) -> Response:
    """Those that a message can be sent to, for a menu: of the composer, or of an answer's retry."""
    models = [one for one in await hub_of(request).models.list() if one.is_usable and one.model]
    unique = list({one.model: one for one in models}.values())
    return pages_of(request).part(
        request, "chat/models.html", models=unique, is_retry="retry" in request.query_params
    )


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
        text, zone, agent, model = (form.get(name) for name in ("text", "time_zone", "agent", "model"))
        files = [
            Attachment(one.filename or "", await one.read(), one.content_type)
            for one in form.getlist("file")
            if not isinstance(one, str)
        ]
    thread = request.path_params.get("thread")
    words = text if isinstance(text, str) else ""
    options = {TIME_ZONE: zone} if isinstance(zone, str) and find_zone(zone) else {}
    if isinstance(model, str) and model:
        options["model"] = model
    to = agent if isinstance(agent, str) and agent else None
    hub = hub_of(request)
    accepted = await hub.messages.post(words, thread=thread, agent=to, options=options, attachments=files)
    return JSONResponse({"thread": accepted.run.thread, "root": accepted.run.root})


async def retry(request: Request) -> Response:
    """The same message once more, perhaps by another model."""
    hub, model = hub_of(request), (await filled(request)).text("model")
    before = await hub.runs.get(request.path_params["run"])
    accepted = await _post_again(hub, before, before.request, before.thread, model)
    return JSONResponse({"thread": accepted.run.thread, "root": accepted.run.root})


async def edit(request: Request) -> Response:
    """The message in other words: in a chat of its own, which has what was said before it."""
    hub, text = hub_of(request), (await filled(request)).text("text")
    before = await hub.runs.get(request.path_params["run"])
    if not text.strip():
        raise InvalidArguments("the message is empty", hint="write what you want")
    begun = await hub.threads.branch(before.thread, through=(before.message or 1) - 1)
    await _post_again(hub, before, text, begun.thread.id)
    return Response(status_code=204, headers={"hx-redirect": f"/chat/{begun.thread.id}"})


async def branch(request: Request) -> Response:
    """A new chat with everything up to the answer of this run."""
    hub = hub_of(request)
    run = await hub.runs.get(request.path_params["run"])
    later = await hub.messages.list(run.thread, after=run.message or 0, limit=1000)
    following = next((one for one in later if one.author == "person" and one.run not in (None, run.id)), None)
    begun = await hub.threads.branch(run.thread, through=following.number - 1 if following else None)
    return Response(status_code=204, headers={"hx-redirect": f"/chat/{begun.thread.id}"})


async def _post_again(hub: BoundHub, before: Run, text: str, thread: str, model: str = "") -> AcceptedRun:
    """With the files of that message, to whom it went."""
    files = [
        Attachment(one["name"], (await hub.result(one["handle"])).body, one["media_type"])
        for one in before.options.get(ATTACHMENTS, ())
    ]
    options = {name: value for name, value in before.options.items() if name == TIME_ZONE}
    if model:
        options["model"] = model
    return await hub.messages.post(
        text, thread=thread, agent=before.agent or None, options=options, attachments=files
    )


async def stop(request: Request) -> Response:
    run = await hub_of(request).runs.cancel(request.path_params["run"])
    return JSONResponse({"thread": run.thread, "root": run.root})


async def thumb(request: Request) -> Response:
    given = (await filled(request)).text("thumb")
    value = int(given) if given in ("1", "-1", "0") else 2
    run = await hub_of(request).runs.thumb(request.path_params["run"], value)
    return pages_of(request).part(request, "chat/thumbs.html", run=run.id, thumb=value)


async def remove(request: Request) -> Response:
    """It can be undone for a moment: the page that comes next offers it."""
    thread = request.path_params["thread"]
    await hub_of(request).threads.remove(thread, after=_UNDO)
    return _deleted([thread])


def _deleted(threads: Sequence[str]) -> Response:
    return Response(
        status_code=204, headers={"hx-redirect": f"/chat?{urlencode([('deleted', one) for one in threads])}"}
    )


async def restore(request: Request) -> Response:
    thread = (await hub_of(request).threads.restore(request.path_params["thread"])).thread.id
    return Response(status_code=204, headers={"hx-redirect": f"/chat/{quote(thread, safe='')}"})


async def rename(request: Request) -> Response:
    title = (await filled(request)).text("title")
    view = await hub_of(request).threads.update(request.path_params["thread"], title=title)
    return JSONResponse({"title": view.thread.title or "Untitled chat"})


async def pin(request: Request) -> Response:
    hub, thread = hub_of(request), request.path_params["thread"]
    is_pinned = (await hub.threads.get(thread)).thread.pinned
    view = await hub.threads.update(thread, pinned=not is_pinned)
    return JSONResponse({"pinned": view.thread.pinned})


async def bulk(request: Request) -> Response:
    """Several at once: pinned or not, deleted and brought back. What cannot be done to one is said."""
    hub, form = hub_of(request), await filled(request)
    threads, what = [*dict.fromkeys(form.chosen("thread"))][:_MOST_CHOSEN], form.text("do")
    if what not in _DEEDS:
        raise InvalidArguments(
            f"{what[:40]!r} is nothing to do with chats", hint="use the page's own buttons"
        )
    word, deed = _DEEDS[what]
    failed = await do_to_many(hub, threads, "chat", partial(deed, hub))
    if what == "delete" and not failed:
        return _deleted(threads)
    if what == "restore" and not failed:
        return Response(status_code=204, headers={"hx-redirect": "/chat"})
    told, kind = told_of_many(threads, "chat", word, failed), "warn" if failed else "good"
    return pages_of(request).part(request, "parts/told.html", told=told, told_kind=kind)


async def show_bulk(request: Request) -> Response:
    return pages_of(request).part(request, "chat/choosing.html")


async def export_many(request: Request) -> Response:
    """One archive with a file of each."""
    hub, asked = hub_of(request), request.query_params
    threads = [*dict.fromkeys(asked.getlist("thread"))][:_MOST_CHOSEN]
    if not threads:
        raise InvalidArguments("no chat is chosen", hint="tick those that are meant")
    archive, taken = BytesIO(), Counter[str]()
    with ZipFile(archive, "w", ZIP_DEFLATED) as files:
        for thread in threads:
            body, _, name, ending = await _exported(hub, thread, asked.get("format", ""))
            taken[name] += 1
            files.writestr(f"{name}-{taken[name]}.{ending}" if taken[name] > 1 else f"{name}.{ending}", body)
    headers = {"content-disposition": 'attachment; filename="chats.zip"'}
    return Response(archive.getvalue(), headers=headers, media_type="application/zip")


async def export(request: Request) -> Response:
    """As a file to keep."""
    thread, format = request.path_params["thread"], request.query_params.get("format", "")
    body, kind, name, ending = await _exported(hub_of(request), thread, format)
    headers = {"content-disposition": f'attachment; filename="{name}.{ending}"'}
    return Response(body, headers=headers, media_type=kind)


async def _exported(hub: BoundHub, thread: str, format: str) -> tuple[str, str, str, str]:
    """The text, its type, and how its file is called and ends."""
    title = (await hub.threads.get(thread)).thread.title
    name = re.sub(r"[^a-z0-9]+", "-", title.lower())[:60].strip("-") or "chat"
    if format == "json":
        messages = [
            {"number": one.number, "author": one.author, "agent": one.agent, "text": one.text,
             "created_at": one.created_at.isoformat(), "details": dict(one.details)}
            for one in await hub.messages.all(thread)
        ]  # fmt: skip
        whole = pretty({"id": thread, "title": title, "messages": messages})
        return whole, "application/json", name, "json"
    return await hub.messages.export(thread), "text/markdown", name, "md"


async def _pin(hub: BoundHub, thread: str) -> None:
    await hub.threads.update(thread, pinned=True)


async def _unpin(hub: BoundHub, thread: str) -> None:
    await hub.threads.update(thread, pinned=False)


async def _delete(hub: BoundHub, thread: str) -> None:
    await hub.threads.remove(thread, after=_UNDO)


async def _restore(hub: BoundHub, thread: str) -> None:
    await hub.threads.restore(thread)


_DEEDS: Mapping[str, tuple[str, Callable[[BoundHub, str], Awaitable[None]]]] = {
    "pin": ("pinned", _pin),
    "unpin": ("unpinned", _unpin),
    "delete": ("deleted", _delete),
    "restore": ("restored", _restore),
}


async def give_media(request: Request) -> Response:
    """A picture or a sound that a tool brought; whatever else is kept is not given as one."""
    kept = await hub_of(request).result(request.path_params["handle"])
    if kept.content_type not in MEDIA_TYPES:
        raise NotFound("there is no such picture", hint="load the page again")
    headers = {
        "content-security-policy": "sandbox; default-src 'none'",
        "cache-control": "private, max-age=86400",
    }
    return Response(kept.body, headers=headers, media_type=kept.content_type)


async def show_connectors(request: Request) -> Response:
    hub = hub_of(request)
    view = await hub.threads.get(request.path_params["thread"])
    facts = await _connectors(hub)
    return pages_of(request).part(request, "chat/connectors.html", thread=view, connectors=facts)


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
    turns, more = await _turns(hub, thread.thread.id) if thread else ([], False)
    if thread and not more:
        said = await hub.messages.list(thread.thread.id, limit=1000)
        turns = [*copied_turns([one for one in said if one.details.get(COPIED)]), *turns]
    views = [] if thread else await _connectors(hub)
    connectors = [view for view in views if _is_at_hand(view)]
    ids = {view.connector.id for view in connectors}
    agents = [] if thread else [one for one in await hub.agents.list() if one.status == "active"]
    return pages_of(request).page(
        request,
        "chat.html",
        title=(thread.thread.title or "Untitled chat") if thread else "New chat",
        thread=thread,
        page=await page_of(request),
        thread_sorts=SORTS,
        turns=turns,
        more=more,
        position=_position(turns),
        others=[
            one.name
            for one in agents
            if one.name != ASSISTANT and (one.kind != "connector" or one.connector_id in ids)
        ],
        present=list(dict.fromkeys(w.agent for turn in turns for w in turn.everything() if w.agent)),
        recipient=await hub.messages.recipient(thread.thread.id if thread else None),
        connectors=connectors,
        not_ready=len(views) - len(connectors),
        starters=[] if thread else await hub.threads.starters(),
        tools=sum(view.tools for view in connectors),
        most_named=_MOST_NAMED,
        model=await hub.models.choose(),
        deleted=request.query_params.getlist("deleted")[:_MOST_CHOSEN],
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


async def _mentionable(hub: BoundHub, query: str = "") -> tuple[list[Mentionable], bool]:
    """Those whose names fit, the best first; whether there are more."""
    words = query.lower()
    fitting = [one for one in await hub.agents.list() if one.status == "active" and words in one.name.lower()]
    fitting.sort(key=lambda one: not one.name.lower().startswith(words))
    shown = fitting[:_MOST_AGENTS]
    counts = {view.connector.id: view for view in await hub.connectors.list()}
    slugs = {view.connector.slug: view.connector.id for view in counts.values()}
    found: list[Mentionable] = []
    for agent in shown:
        ids: Sequence[str | None] = [*counts]
        if agent.kind == "connector":
            ids = [agent.connector_id]
        elif agent.connectors is not None:
            ids = [slugs.get(slug) for slug in agent.connectors]
        found.append(Mentionable(agent, sum(counts[one].tools for one in ids if one in counts)))
    return found, len(fitting) > len(shown)


async def _connectors(hub: BoundHub) -> list[ConnectorView]:
    return [view for view in await hub.connectors.list() if view.connector.kind != "native"]


def _is_at_hand(view: ConnectorView) -> bool:
    """Whether something can be done with it now: what is off, failed or has no tools is not offered."""
    return view.tools > 0 and view.status.state not in ("disabled", "error", "needs_auth")


def _position(turns: Sequence[ChatTurn]) -> str:
    """Where the stream begins: with the first turn that is not over, else after the last."""
    turns = [one for one in turns if not one.is_copied]
    turn = next((one for one in turns if not one.is_over), turns[-1] if turns else None)
    return f"{turn.root}:{turn.number}" if turn else "-:0"


routes = [
    Route("/chat", new_chat),
    Route("/chat", write, methods=["POST"]),
    Route("/chat/lists/threads", list_threads),
    Route("/chat/lists/agents", list_agents),
    Route("/chat/lists/models", list_models),
    Route("/chat/-/bulk", show_bulk),
    Route("/chat/-/bulk", bulk, methods=["POST"]),
    Route("/chat/-/export", export_many),
    Route("/chat/turns/{run}", show_turn),
    Route("/chat/media/{handle}", give_media),
    Route("/chat/runs/{run}/stop", stop, methods=["POST"]),
    Route("/chat/runs/{run}/retry", retry, methods=["POST"]),
    Route("/chat/runs/{run}/edit", edit, methods=["POST"]),
    Route("/chat/runs/{run}/branch", branch, methods=["POST"]),
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
    Route("/chat/{thread}/title", rename, methods=["POST"]),
    Route("/chat/{thread}/pin", pin, methods=["POST"]),
    Route("/chat/{thread}/restore", restore, methods=["POST"]),
    Route("/chat/{thread}/export", export),
    Route("/chat/{thread}/connectors", show_connectors),
    Route("/chat/{thread}/connectors", choose_connectors, methods=["POST"]),
]
