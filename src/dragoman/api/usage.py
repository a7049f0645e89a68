"""`/api/usage`: what was used, and what may still be."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response
from typing_extensions import TypedDict

from dragoman.api.requests import PROBLEMS, TheCaller, TheHub
from dragoman.web.encoding import json_response

routes = APIRouter(prefix="/api", tags=["usage"], responses=PROBLEMS)


class UsedLimitShape(TypedDict):
    """`used` is null where nothing is counted: there is no bound. Money is in dollars."""

    bound: str
    used: float | None
    limit: float | None
    set_by: str | None
    resets_at: str | None


class UsageReportShape(TypedDict):
    user: str
    name: str
    calls_last_hour: int
    calls_last_day: int
    uses: list[UsedLimitShape]


@routes.get("/usage", responses={200: {"model": UsageReportShape}})
async def show_usage(
    hub: TheHub,
    caller: TheCaller,
    user: Annotated[str | None, Query(max_length=200, description="id or name; for admins")] = None,
) -> Response:
    """What was used in the current windows, the bounds in force and who set each."""
    return json_response(await hub.usage.show(user, caller=caller))
