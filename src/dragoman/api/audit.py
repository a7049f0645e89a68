"""`/api/audit`: who did what to which."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.hub.audit import AuditSort
from dragoman.web.encoding import encode, json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["audit"], responses=PROBLEMS)
LINES = "application/x-ndjson"

Word = Annotated[str | None, Query(max_length=200)]
Workspace = Annotated[str | None, Query(max_length=200, description="id or name; for the operator")]
After = Annotated[int, Query(ge=0, le=2**31 - 1)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Moment = Annotated[AwareDatetime | None, Query(description="with its time zone: 2026-01-31T12:00:00Z")]


class AuditEntryShape(Shape):
    """`previous` and `hash` hang the entries of a workspace together."""

    time: datetime
    workspace: str
    user: str
    agent: str | None
    way: str
    action: str
    subject: str
    outcome: str
    arguments_hash: str | None
    details: dict[str, Any]
    number: int
    previous: str
    hash: str


class AuditEntriesShape(Shape):
    """`names` says how people call users, and what was done to, by id; where there is a name."""

    entries: list[AuditEntryShape]
    names: dict[str, str]


class AuditVerdictShape(Shape):
    """`number` is the last good entry and `head` its hash; `problem` says what is wrong after it.

    `erased` is how many entries are nobody's any more.
    """

    is_whole: bool
    number: int
    problem: str | None
    count: int
    head: str
    erased: int


@routes.get("/audit", responses={200: {"model": AuditEntriesShape}})
async def list_entries(
    hub: TheHub,
    user: Word = None,
    action: Word = None,
    since: Moment = None,
    until: Moment = None,
    q: Annotated[str, Query(max_length=200, description="words of what it was done to")] = "",
    after: After = 0,
    limit: Limit = 100,
    workspace: Workspace = None,
    sort: AuditSort = "newest",
) -> Response:
    """`after` the entry of that number come those that follow it in the order. Members see their own.

    `q` are words of what it was done to, of the action, the outcome or the agent's name.
    """
    entries = await hub.audit.list(
        user=user,
        action=action,
        since=since,
        until=until,
        query=q,
        after=after,
        limit=limit,
        workspace=workspace,
        sort=sort,
    )
    return json_response({"entries": entries, "names": await hub.audit.names(entries)})


@routes.get("/audit/verify", responses={200: {"model": AuditVerdictShape}})
async def verify_trail(hub: TheHub, workspace: Workspace = None) -> Response:
    """Whether the trail of the workspace is whole, or where it is broken. For admins."""
    return json_response(AuditVerdictShape.of(await hub.audit.verify(workspace=workspace)))


@routes.get("/audit/export", responses={200: {"content": {LINES: {}}}})
async def export_entries(
    hub: TheHub, after: After = 0, limit: Limit = 1000, workspace: Workspace = None
) -> Response:
    """One JSON document a line, oldest first: the entries that follow number `after`. Empty at the end."""
    entries = await hub.audit.export(after=after, limit=limit, workspace=workspace)
    return Response(b"".join(encode(entry) + b"\n" for entry in entries), media_type=LINES)
