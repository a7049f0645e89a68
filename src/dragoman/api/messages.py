"""`/api/threads/{thread}/messages` and `/api/messages`: what is written, and who then works on it."""

import asyncio
import re
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Self, cast

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from starlette.responses import Response

from dragoman.agent import Exposure
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.run_shapes import AcceptedShape, MessagesShape, message_view, run_view
from dragoman.hub import BoundHub
from dragoman.hub.attachments import MOST_ATTACHED, Attachment
from dragoman.run import Run, RunEvent, RunLimits
from dragoman.store.records import AcceptedRun
from dragoman.web.encoding import json_response
from dragoman.web.standing_streams import STREAMS

routes = APIRouter(prefix="/api", tags=["messages"], responses=PROBLEMS)
LONGEST_WAIT = 300.0
_PREFER_WAIT = re.compile(r"(?:^|[,;\s])wait(?:=(\d{1,6}))?(?=$|[,;\s])", re.IGNORECASE)


class RunLimitsRequest(BaseModel):
    """What the run may use, the runs under it included. What is left out stays as usual."""

    model_config = ConfigDict(extra="forbid")

    requests: int | None = Field(default=None, ge=1, le=10_000, description="to the model")
    calls: int | None = Field(default=None, ge=0, le=100_000, description="of tools")
    tokens: int | None = Field(default=None, ge=1, le=10**9)
    cost: float | None = Field(default=None, ge=0, le=10**6, allow_inf_nan=False, description="dollars")
    seconds: float | None = Field(
        default=None, gt=0, le=86_400, allow_inf_nan=False, description="of work; waiting does not count"
    )


def _decoded(data: Any) -> bytes:
    """Strictly: what is no base64 would become other bytes."""
    if not isinstance(data, str):
        raise ValueError("must be a text in base64")  # noqa: TRY004  # pydantic tells of no TypeError
    return b64decode(data, validate=True)


class NewAttachment(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=200, description="of the file; without `media_type` it tells the kind")
    media_type: str | None = Field(default=None, max_length=100)
    text: str | None = Field(default=None, description="of a file of text")
    data: Annotated[bytes, BeforeValidator(_decoded)] | None = Field(
        default=None,
        description="the bytes in base64: text in UTF-8, an image",
        json_schema_extra={"contentEncoding": "base64"},
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.text is None) == (self.data is None):
            raise ValueError("a file needs either text or data")
        return self

    def attachment(self) -> Attachment:
        data = self.data if self.data is not None else (self.text or "").encode("utf-8", "replace")
        return Attachment(self.name, data, self.media_type)


class NewMessage(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"text": "check my 2 latest emails"},
                {"text": "what is due this week?", "agent": "planner", "limits": {"calls": 10}},
            ]
        },
    )

    text: str = Field(description="`@name` sends it to that agent, several to several")
    agent: str | None = Field(
        default=None, max_length=200, description="sends it to this agent, whatever it mentions"
    )
    model: str | None = Field(default=None, max_length=500, description="a model for this run")
    exposure: Exposure | None = Field(default=None, description="how the agent reaches its tools")
    max_tools: int | None = Field(default=None, ge=1, le=1000, description="the most tool calls it makes")
    cost_limit: float | None = Field(
        default=None, ge=0, le=10**6, allow_inf_nan=False, description="dollars; the same as limits.cost"
    )
    limits: RunLimitsRequest = RunLimitsRequest()
    attachments: list[NewAttachment] = Field(
        default_factory=list[NewAttachment],
        max_length=MOST_ATTACHED,
        description="files that the model reads with the message: text, or png, jpeg, gif and webp images",
    )

    def options(self) -> dict[str, Any]:
        given = {"model": self.model, "exposure": self.exposure, "max_tools": self.max_tools}
        return {name: value for name, value in given.items() if value is not None}

    def run_limits(self, usual: RunLimits) -> RunLimits:
        limits = replace(usual, **self.limits.model_dump(exclude_none=True))
        if self.cost_limit is None:
            return limits
        return replace(limits, cost=min(self.cost_limit, limits.cost if limits.cost is not None else 10**6))


Wait = Annotated[
    bool, Query(description=f"answer when the run has ended or waits for a person, within {LONGEST_WAIT:g} s")
]
Prefer = Annotated[str | None, Header(description="`wait`, or `wait=SECONDS`, does the same")]
_ACCEPTED: dict[int | str, dict[str, Any]] = {
    200: {"model": AcceptedShape, "description": "With `wait`: the run has ended"},
    202: {"model": AcceptedShape, "description": "It is on disk and will be worked on"},
}


@routes.get("/threads/{thread}/messages", responses={200: {"model": MessagesShape}})
async def list_messages(
    thread: str,
    hub: TheHub,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="only those with a higher number")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """In order. Without `after` the newest, else the next ones after that number."""
    messages = await hub.messages.list(thread, after=after, limit=limit)
    return json_response({"messages": [message_view(message) for message in messages]})


@routes.post("/threads/{thread}/messages", status_code=202, responses=_ACCEPTED)
async def post_message(
    thread: str,
    new: NewMessage,
    request: Request,
    hub: TheHub,
    wait: Wait = False,
    prefer: Prefer = None,
) -> Response:
    """Who is mentioned works on it, else who spoke last, else the assistant.

    While an agent waits for the answer to its question, a message without a mention is that answer, and `run`
    is the one that goes on with it.
    """
    return await _posted(thread, new, request, hub, _seconds(wait, prefer))


@routes.post("/messages", status_code=202, responses=_ACCEPTED)
async def begin_thread(
    new: NewMessage,
    request: Request,
    hub: TheHub,
    wait: Wait = False,
    prefer: Prefer = None,
) -> Response:
    """The same in a new thread: `run.thread` names it."""
    return await _posted(None, new, request, hub, _seconds(wait, prefer))


async def _posted(
    thread: str | None, new: NewMessage, request: Request, hub: BoundHub, seconds: float
) -> Response:
    accepted = await hub.messages.post(
        new.text,
        thread=thread,
        agent=new.agent,
        options=new.options(),
        limits=new.run_limits(hub.messages.usual_limits),
        attachments=[one.attachment() for one in new.attachments],
    )
    run = accepted.run
    if seconds:
        run = await _settled(hub, run, request.scope[STREAMS].stopping, seconds)
    return _told(replace(accepted, run=run), waited=bool(seconds))


def _told(accepted: AcceptedRun, waited: bool) -> Response:
    body = {
        "run": run_view(accepted.run),
        "message": message_view(accepted.message) if accepted.message else None,
    }
    status = 200 if waited and accepted.run.is_finished else 202
    return json_response(body, status, {"Location": f"/api/runs/{accepted.run.id}"})


def _seconds(wait: bool, prefer: str | None) -> float:
    """How long the caller would wait; 0 for not at all."""
    asked = _PREFER_WAIT.search(prefer or "")
    if asked is None:
        return LONGEST_WAIT if wait else 0.0
    return min(float(asked.group(1) or LONGEST_WAIT), LONGEST_WAIT)


async def _settled(hub: BoundHub, run: Run, stopping: asyncio.Event, seconds: float) -> Run:
    """As it is when it has ended, when it or the run before it in the thread waits for a person, or the time
    is over."""

    async def follow(events: AsyncIterator[RunEvent]) -> None:
        async with aclosing(cast("AsyncGenerator[RunEvent]", events)) as told:
            async for event in told:
                if event.kind == "run.waiting" and await _waits(hub, run):
                    return

    async with asyncio.TaskGroup() as tasks:
        parts = [tasks.create_task(follow(hub.runs.follow(run.id))), tasks.create_task(stopping.wait())]
        if run.message != 1:  # in a new thread nobody is before it
            parts.append(tasks.create_task(follow(hub.runs.follow_thread(run.thread))))
        await asyncio.wait(parts, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for part in parts:
            part.cancel()
    return await hub.runs.get(run.id)


async def _waits(hub: BoundHub, run: Run) -> bool:
    """Whether somebody has to answer now before this run goes on: an event of the past does not say so."""
    if await hub.runs.questions(thread=run.thread):  # of this run, or of the one that it comes after
        return True
    asked = await hub.approvals.list("pending")
    return any(
        (one.approval.binding.user, one.approval.binding.thread) == (run.user, run.thread) for one in asked
    )
