"""`/api/usage`: what was used, and what may still be."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["usage"], responses=PROBLEMS)


class UsedLimitShape(Shape):
    """`name` says which; `used` is null where nothing is counted: there is no limit. Money is in dollars."""

    name: str
    bound: str = Field(description="The same as `name`.", json_schema_extra={"deprecated": True})
    used: float | None
    limit: float | None
    set_by: str | None
    resets_at: datetime | None


class KeyUsageShape(Shape):
    """Of a key, or of a client, with limits of its own."""

    id: str
    name: str
    is_client: bool
    uses: list[UsedLimitShape]


class UsageReportShape(Shape):
    user: str
    name: str
    calls_last_hour: int
    calls_last_day: int
    uses: list[UsedLimitShape]
    keys: list[KeyUsageShape]


@routes.get("/usage", responses={200: {"model": UsageReportShape}})
async def show_usage(
    hub: TheHub,
    user: Annotated[str | None, Query(max_length=200, description="id or name; for admins")] = None,
) -> Response:
    """What was used in the current windows, the limits in force and who set each."""
    return json_response(UsageReportShape.of(await hub.usage.show(user)))
