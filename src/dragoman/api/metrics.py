"""`/api/metrics`: numbers over time, of the caller or for admins of their workspace."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.hub.statistics import MetricGroup, MetricPoint, MetricRange, MetricSplit
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["metrics"], responses=PROBLEMS)
_Filter = Annotated[str | None, Query(max_length=200)]


class MetricNumbersShape(Shape):
    """Times are milliseconds, without what people took to answer. `cost` is null where no price is known."""

    calls: int
    errors: int
    p50_ms: float | None
    p95_ms: float | None
    reconnects: int
    runs: int
    failed_runs: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    unpriced: int


class MetricPointShape(Shape):
    start: datetime
    numbers: MetricNumbersShape


class MetricGroupShape(Shape):
    name: str
    label: str
    numbers: MetricNumbersShape
    points: list[MetricPointShape]


class MetricSeriesShape(Shape):
    """`before` are the numbers of the same time before `start`; a point is `seconds` long."""

    last: MetricRange
    start: datetime
    end: datetime
    seconds: int
    split: MetricSplit | None
    total: MetricNumbersShape
    before: MetricNumbersShape
    points: list[MetricPointShape]
    groups: list[MetricGroupShape]


@routes.get("/metrics", responses={200: {"model": MetricSeriesShape}})
async def show_metrics(
    hub: TheHub,
    last: Annotated[MetricRange, Query(description="the time up to now")] = "24h",
    split: Annotated[MetricSplit | None, Query(description="adds the same for each of them")] = None,
    connector: _Filter = None,
    tool: _Filter = None,
    agent: _Filter = None,
    user: Annotated[str | None, Query(max_length=200, description="id or name; for admins")] = None,
    client: _Filter = None,
    model: _Filter = None,
    groups: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """Calls, errors, latency, tokens, cost and reconnects over time."""
    series = await hub.statistics.series(
        last,
        split=split,
        connector=connector,
        tool=tool,
        agent=agent,
        user=user,
        client=client,
        model=model,
        groups=groups,
    )
    return json_response(
        MetricSeriesShape.of(
            series,
            total=MetricNumbersShape.of(series.total),
            before=MetricNumbersShape.of(series.before),
            points=[_point(one) for one in series.points],
            groups=[_group(one) for one in series.groups],
        )
    )


def _point(point: MetricPoint) -> MetricPointShape:
    return MetricPointShape(start=point.start, numbers=MetricNumbersShape.of(point.numbers))


def _group(group: MetricGroup) -> MetricGroupShape:
    numbers, points = MetricNumbersShape.of(group.numbers), [_point(one) for one in group.points]
    return MetricGroupShape(name=group.name, label=group.label, numbers=numbers, points=points)
