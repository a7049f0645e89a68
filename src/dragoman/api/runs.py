"""`/api/runs` and the streams of runs and threads: look, follow, stop, say what one thinks of an answer."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter
from starlette.responses import Response

from dragoman.api.events import event_stream, run_frames
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.run_shapes import (
    RunEventShape,
    RunFamilyShape,
    RunShape,
    RunsShape,
    SentPromptsShape,
    TimelineShape,
    prompts_view,
    run_view,
    runs_view,
    timeline_view,
)
from dragoman.hub.runs import unknown_user
from dragoman.run import RunSort, RunStatus
from dragoman.web.encoding import json_response
from dragoman.web.guard import CREDENTIAL, Credential
from dragoman.web.problems import InvalidRequest
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["runs"], responses=PROBLEMS)
_ID_IN_RUN = re.compile(r"\d{1,9}")
_ID_IN_THREAD = re.compile(r"([\w-]{1,100}):(\d{1,9})", re.ASCII)

Name = Annotated[str | None, Query(max_length=200)]
LastEventId = Annotated[str | None, Header(max_length=200, description="of the last event that was heard")]
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events; the data of each is a RunEventShape",
        "content": {"text/event-stream": {"schema": TypeAdapter(RunEventShape).json_schema()}},
    }
}


class ThumbRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"thumb": 1}]})

    thumb: Literal[1, -1, 0] = Field(description="1 is up, -1 is down, 0 takes it back")


class ThumbShape(Shape):
    run: str
    thumb: int


@routes.get("/runs", responses={200: {"model": RunsShape}})
async def list_runs(
    request: Request,
    hub: TheHub,
    thread: Name = None,
    agent: Name = None,
    status: RunStatus | None = None,
    before: Annotated[AwareDatetime | None, Query(description="only those that began earlier")] = None,
    children: Annotated[bool, Query(description="also those that an agent started")] = False,
    q: Annotated[str, Query(max_length=200, description="words of the request")] = "",
    user: Annotated[
        str | None, Query(max_length=200, description="for admins: one of the workspace, or `*` for all")
    ] = None,
    sort: RunSort = "newest",
    after: Annotated[str | None, Query(max_length=200, description="`next` of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """One's own; long texts are cut here. Those of others take a key with the scope `admin`.

    Sorted by `longest`, those that have not ended come last.
    """
    if user is not None and not _may_oversee(request):
        raise unknown_user(user)
    runs = await hub.runs.list(
        thread=thread,
        agent=agent,
        status=status,
        roots_only=not children,
        before=_utc(before),
        query=q,
        user=user,
        sort=sort,
        after=after,
        limit=limit,
    )
    return json_response(runs_view(runs, limit))


@routes.get("/runs/{run}", responses={200: {"model": RunFamilyShape}})
async def get_run(run: str, hub: TheHub) -> Response:
    found, family = await hub.runs.with_family(run)
    return json_response({"run": run_view(found), "family": [run_view(one) for one in family]})


@routes.get("/runs/{run}/timeline", responses={200: {"model": TimelineShape}})
async def get_timeline(request: Request, run: str, hub: TheHub) -> Response:
    """What was offered, asked, called, planned and answered, with tokens, cost, times and errors.

    Kinds of steps: started, resumed, offered, model, retry, plan, call, question, approval, message, note,
    notice, run, finished. Arguments and results are previews without secrets. What a call started is nested
    in it.
    An admin, with a key that has the scope `admin`, may read those of others in the workspace; that they
    looked is in the audit trail.
    """
    found = await (hub.runs.oversee(run) if _may_oversee(request) else hub.runs.timeline(run))
    return json_response(timeline_view(found))


def _may_oversee(request: Request) -> bool:
    """Whether the key was made to look after others; whether its user may is the hub's to say."""
    credential: Credential | None = request.scope.get(CREDENTIAL)
    return credential is not None and "admin" in credential.admission.scopes


@routes.get("/runs/{run}/prompts", responses={200: {"model": SentPromptsShape}})
async def get_prompts(run: str, hub: TheHub) -> Response:
    """What the models were sent, of the run and of those under it: instructions, functions, messages.

    As it was sent, with secrets left out. What others wrote stands between `<data …>` marks.
    """
    return json_response(prompts_view(await hub.runs.prompts(run)))


@routes.post("/runs/{run}/cancel", responses={200: {"model": RunShape}})
async def cancel_run(run: str, hub: TheHub) -> Response:
    """Stops it with all that is under it; one that an agent started stops with the run it belongs to."""
    return json_response(run_view(await hub.runs.cancel(run)))


@routes.post("/runs/{run}/thumb", responses={200: {"model": ThumbShape}})
async def thumb_run(run: str, given: ThumbRequest, hub: TheHub) -> Response:
    """Kept with the answer's message, and counted where ways of working are compared."""
    found = await hub.runs.thumb(run, given.thumb)
    return json_response({"run": found.id, "thumb": given.thumb})


@routes.get("/runs/{run}/events", responses={**_STREAM, 204: {"description": "All has been told"}})
async def follow_run(
    run: str,
    request: Request,
    hub: TheHub,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="only events with a higher number")] = 0,
    last_event_id: LastEventId = None,
) -> Response:
    """From its first event, or after the one of that number, until `run.finished`.

    Events of the runs under it come in the same stream. Resumed by `Last-Event-ID`, nothing is lost or told
    twice; who comes back after the end gets 204 and need not come again.
    """
    after = _number(last_event_id, after)
    if after and await hub.runs.has_told(run, after):
        return Response(status_code=204)
    await hub.runs.get(run)
    frames = run_frames(hub.runs.follow(run, after))
    return event_stream(request, frames)


@routes.get("/threads/{thread}/events", responses=_STREAM)
async def follow_thread(
    thread: str,
    request: Request,
    hub: TheHub,
    after: Annotated[
        str | None, Query(max_length=200, description="`<run>:<number>`; `<run>:0` is from that run on")
    ] = None,
    last_event_id: LastEventId = None,
) -> Response:
    """What happens in the thread, one run after the other, without end.

    From the first run that has not ended, or after the event of that id.
    """
    await hub.threads.get(thread)
    frames = run_frames(hub.runs.follow_thread(thread, _place(last_event_id or after)), of_thread=True)
    return event_stream(request, frames)


def _number(last_event_id: str | None, after: int) -> int:
    """What the reader heard last counts more than the address that it began with."""
    if not last_event_id:
        return after
    if not _ID_IN_RUN.fullmatch(last_event_id):
        raise InvalidRequest("Last-Event-ID: the id of an event of a run is a number")
    return int(last_event_id)


def _place(mark: str | None) -> tuple[str, int] | None:
    if not mark:
        return None
    found = _ID_IN_THREAD.fullmatch(mark)
    if found is None:
        raise InvalidRequest("after: the id of an event of a thread is <run>:<number>")
    return found.group(1), int(found.group(2))


def _utc(time: datetime | None) -> datetime | None:
    try:
        return time.astimezone(UTC) if time else None
    except OverflowError:
        raise InvalidRequest("before: there is no such time") from None
