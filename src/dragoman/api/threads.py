"""`/api/threads` and `/api/preferences`: what is active in a conversation, and what a user prefers."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.people_shapes import OldName
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.run_shapes import MessageShape, message_view
from dragoman.api.setting_models import request_of
from dragoman.api.shapes import ToolShape, tool_view
from dragoman.hub import BoundHub
from dragoman.hub.preferences import PreferencesView
from dragoman.hub.thread_tools import ThreadTools, Why
from dragoman.hub.threads import ThreadView, cursor_of
from dragoman.people import Preferences, ThreadSort, UserLimits
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["threads"], responses=PROBLEMS)
_MOST_NAMES = 1000

Slugs = Annotated[
    list[Annotated[str, Field(max_length=200)]],
    Field(max_length=_MOST_NAMES, description="connectors by name"),
]


async def _hub_in_thread(
    hub: TheHub,
    thread: Annotated[
        str | None, Query(min_length=1, max_length=200, description="only what is active in this thread")
    ] = None,
) -> BoundHub:
    return hub if thread is None else await hub.acting_for(replace(hub.caller, thread=thread)).in_thread()


ThreadHub = Annotated[BoundHub, Depends(_hub_in_thread)]
"""`TheHub`, with no other connectors than those active in the thread that the request names."""


class ThreadShape(Shape):
    """`connectors` null: the user's default set. `active` is what is in force now."""

    id: str
    title: str
    connectors: list[str] | None
    active: list[str]
    limit: int | None
    notes: list[str]
    pinned: bool
    remove_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ThreadsShape(Shape):
    """`next` is where the page after this one begins; null on the last."""

    threads: list[ThreadShape]
    next: str | None


class StarterShape(Shape):
    text: str
    connector: str


class StartersShape(Shape):
    starters: list[StarterShape]


class ThreadExportShape(Shape):
    thread: ThreadShape
    messages: list[MessageShape]


class MissingToolsShape(Shape):
    """Tools that cannot be called in this thread, for one reason. A count of 0: nobody knows how many."""

    why: Why
    connector: str | None
    count: int
    reason: str
    text: str
    hint: str | None


class ThreadToolsShape(Shape):
    tools: list[ToolShape]
    missing: list[MissingToolsShape]


class PreferencesShape(Shape):
    """`limits` are the user's own, `above` what others set, `in_force` the smaller of both."""

    connectors: list[str] | None
    auto_load: bool
    time_zone: str | None
    limits: UserLimits
    bounds: OldName
    above: UserLimits
    in_force: UserLimits


class NewThread(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = Field(default="", max_length=200)
    connectors: Slugs | None = Field(
        default=None, description="null: the default set, whatever it is by then"
    )
    id: str | None = Field(default=None, min_length=1, max_length=200, description="random unless given")


class ThreadChanges(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(default=None, max_length=200)
    pinned: bool | None = Field(default=None, description="pinned threads are listed first")


class NewBranch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    through: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="the last message to take along; null: all"
    )


class ThreadConnectors(BaseModel):
    model_config = ConfigDict(extra="forbid")

    connectors: Slugs | None = Field(description="null: the user's default set")


class NamedConnectors(BaseModel):
    model_config = ConfigDict(extra="forbid")

    connectors: Slugs


class PreferenceChanges(request_of(Preferences)):
    """What is left out stays as it is, null sets back to the default. `connectors` are those of a new
    thread; null: all."""


_ONE: dict[int | str, dict[str, Any]] = {200: {"model": ThreadShape}}
_PREFERENCES: dict[int | str, dict[str, Any]] = {200: {"model": PreferencesShape}}


@routes.get("/threads", responses={200: {"model": ThreadsShape}})
async def list_threads(
    hub: TheHub,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(max_length=500, description="`next` of the page before")] = None,
    q: Annotated[str, Query(max_length=200, description="words of the title or of a message")] = "",
    sort: ThreadSort = "latest",
) -> Response:
    """Pinned ones first, then the last changed or written in, or by title."""
    views = await hub.threads.list(limit, after=after, query=q, sort=sort)
    after = cursor_of(views[-1].thread) if len(views) == limit else None
    return json_response(ThreadsShape(threads=[thread_view(view) for view in views], next=after))


@routes.get("/starters", responses={200: {"model": StartersShape}})
async def list_starters(hub: TheHub, limit: Annotated[int, Query(ge=1, le=50)] = 4) -> Response:
    """First messages for a new thread, made from what is connected."""
    found = await hub.threads.starters(limit)
    return json_response(StartersShape(starters=[StarterShape.of(one) for one in found]))


@routes.post("/threads", status_code=201, responses={201: {"model": ThreadShape}})
async def create_thread(new: NewThread, hub: TheHub) -> Response:
    view = await hub.threads.create(new.title, new.connectors, id=new.id)
    return json_response(thread_view(view), 201)


@routes.get("/threads/{thread}", responses=_ONE)
async def get_thread(thread: str, hub: TheHub) -> Response:
    return json_response(thread_view(await hub.threads.get(thread)))


@routes.patch("/threads/{thread}", responses=_ONE)
async def change_thread(thread: str, changes: ThreadChanges, hub: TheHub) -> Response:
    return json_response(
        thread_view(await hub.threads.update(thread, title=changes.title, pinned=changes.pinned))
    )


@routes.delete("/threads/{thread}", status_code=204)
async def remove_thread(
    thread: str,
    hub: TheHub,
    after: Annotated[
        float, Query(ge=0, le=86_400, allow_inf_nan=False, description="seconds in which it can be restored")
    ] = 0,
) -> Response:
    """With its messages and runs. Until `after` is over it is in no list."""
    await hub.threads.remove(thread, after=after)
    return Response(status_code=204)


@routes.post("/threads/{thread}/restore", responses=_ONE)
async def restore_thread(thread: str, hub: TheHub) -> Response:
    """It is not removed after all."""
    return json_response(thread_view(await hub.threads.restore(thread)))


@routes.post("/threads/{thread}/branch", status_code=201, responses={201: {"model": ThreadShape}})
async def branch_thread(thread: str, wanted: NewBranch, hub: TheHub) -> Response:
    """A new thread with the same connectors and messages, up to one of them."""
    return json_response(thread_view(await hub.threads.branch(thread, through=wanted.through)), 201)


@routes.get(
    "/threads/{thread}/export",
    responses={200: {"model": ThreadExportShape, "content": {"text/markdown": {}}}},
)
async def export_thread(
    thread: str,
    hub: TheHub,
    format: Annotated[Literal["markdown", "json"], Query()] = "markdown",
) -> Response:
    """All that was said, to read or to keep elsewhere."""
    if format == "markdown":
        return Response(await hub.messages.export(thread), media_type="text/markdown")
    messages = [message_view(one) for one in await hub.messages.all(thread)]
    return json_response(
        ThreadExportShape(thread=thread_view(await hub.threads.get(thread)), messages=messages)
    )


@routes.put("/threads/{thread}/connectors", responses=_ONE)
async def set_connectors(thread: str, wanted: ThreadConnectors, hub: TheHub) -> Response:
    """These and no others. Effective for the next call."""
    return json_response(thread_view(await hub.threads.set(thread, wanted.connectors)))


@routes.post("/threads/{thread}/add", responses=_ONE)
async def add_connectors(thread: str, wanted: NamedConnectors, hub: TheHub) -> Response:
    """These too."""
    return json_response(thread_view(await hub.threads.add(thread, *wanted.connectors)))


@routes.post("/threads/{thread}/disable", responses=_ONE)
async def disable_connectors(thread: str, wanted: NamedConnectors, hub: TheHub) -> Response:
    """All but these."""
    return json_response(thread_view(await hub.threads.disable(thread, *wanted.connectors)))


@routes.get("/threads/{thread}/tools", responses={200: {"model": ThreadToolsShape}})
async def list_thread_tools(
    thread: str,
    hub: TheHub,
    tool: Annotated[
        list[str] | None, Query(max_length=_MOST_NAMES, description="only these tools or connectors")
    ] = None,
    max_tools: Annotated[int | None, Query(ge=1, le=100_000, description="no more than so many")] = None,
) -> Response:
    """What can be called in this thread, and why the rest cannot."""
    found = await hub.threads.tools(thread, tools=tool, max_tools=max_tools)
    return json_response(thread_tools_view(found))


@routes.get("/preferences", responses=_PREFERENCES)
async def get_preferences(hub: TheHub) -> Response:
    return json_response(preferences_view(await hub.preferences.get()))


@routes.patch("/preferences", responses=_PREFERENCES)
async def change_preferences(changes: PreferenceChanges, hub: TheHub) -> Response:
    """A limit of your own can be lower than what others set for you, never higher."""
    settings: Any = changes.settings()
    return json_response(preferences_view(await hub.preferences.update(**settings)))


def thread_view(view: ThreadView) -> ThreadShape:
    return ThreadShape.of(view.thread, active=view.active, limit=view.limit, notes=view.notes)


def thread_tools_view(found: ThreadTools) -> ThreadToolsShape:
    return ThreadToolsShape.of(found, tools=[tool_view(info) for info in found.tools])


def preferences_view(view: PreferencesView) -> PreferencesShape:
    return PreferencesShape.of(view.preferences, above=view.above, in_force=view.in_force)
