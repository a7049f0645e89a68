"""`/charts`: numbers over time, split and filtered; the same as CSV. Charts of other pages begin here too."""

import csv
from collections.abc import Sequence
from functools import partial
from io import StringIO
from typing import Any, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.charts import charts_of, cost, reconnects_chart, short, spark
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.hub.statistics import MetricNumbers, MetricRange, MetricSeries, MetricSplit
from dragoman.people import User

RANGES: dict[str, str] = {
    "1h": "last hour",
    "24h": "last 24 hours",
    "7d": "last 7 days",
    "30d": "last 30 days",
}
FILTERS: tuple[str, ...] = get_args(MetricSplit)
CLIENTS = {"direct": "API and console", "agent": "Agents", "code": "Code", "mcp": "MCP clients"}
_MOST_GROUPS = 50
_COLUMNS = (
    "calls", "errors", "p50_ms", "p95_ms", "reconnects", "runs", "failed_runs", "requests", "input_tokens",
    "output_tokens", "cost", "unpriced",
)  # fmt: skip


def range_of(request: Request) -> MetricRange:
    asked = request.query_params.get("range", "24h")
    return asked if asked in RANGES else "24h"  # type: ignore[return-value]


async def charts_about(request: Request, **only: str) -> dict[str, Any]:
    """For the page of one agent, user or model: its charts, and where there is more of them."""
    series = await hub_of(request).statistics.series(range_of(request), **only)  # type: ignore[arg-type]
    more = urlencode({**only, "range": series.last})
    return {
        "series": series,
        "charts": charts_of(series),
        "when": RANGES[series.last],
        "more": more,
        "link": partial(_range_link, request.url.path, request.query_params.get("workspace", "")),
    }


def _range_link(path: str, workspace: str, *, range: str) -> str:
    asked = urlencode({"range": range, **({"workspace": workspace} if workspace else {})})
    return f"{path}?{asked}"


async def show(request: Request) -> Response:
    facts = await _facts(request)
    if is_part(request):
        return pages_of(request).part(request, "metrics/body.html", **facts)
    return pages_of(request).page(request, "metrics.html", title="Metrics", **facts)


async def download(request: Request) -> Response:
    """The points, of each group where it is split; times are those of the beginning."""
    series = await _series(request)
    page = StringIO()
    writer = csv.writer(page)
    writer.writerow(("start", series.split or "all", *_COLUMNS))
    groups = (
        [(group.name, group.points) for group in series.groups] if series.split else [("", series.points)]
    )
    for name, points in groups:
        for point in points:
            writer.writerow((point.start.isoformat(), _harmless(name), *_values(point.numbers)))
    headers = {"content-disposition": f'attachment; filename="metrics-{series.last}.csv"'}
    return Response(page.getvalue(), media_type="text/csv", headers=headers)


async def _facts(request: Request) -> dict[str, Any]:
    hub, series = hub_of(request), await _series(request)
    chosen = _chosen(request)
    users: Sequence[User] = await hub.people.users() if hub.caller.is_admin else ()
    return {
        "series": series,
        "charts": (*charts_of(series), reconnects_chart(series)),
        "chosen": chosen,
        "split": series.split or "",
        "when": RANGES[series.last],
        "filters": [name for name in FILTERS if name != "user" or hub.caller.is_admin],
        "options": {
            "connector": [(one.connector.slug, one.connector.slug) for one in await hub.connectors.list()],
            "agent": [(one.name, one.name) for one in await hub.agents.list()],
            "user": [(one.id, one.name) for one in users],
            "client": [*CLIENTS.items()],
        },
        "labels": CLIENTS if series.split == "client" else {},
        "link": partial(_link, request),
        "spark": spark,
        "cost": cost,
        "short": short,
    }


def _chosen(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "") for name in FILTERS}


async def _series(request: Request) -> MetricSeries:
    asked: dict[str, Any] = {name: value for name, value in _chosen(request).items() if value}
    split = request.query_params.get("split") or None
    return await hub_of(request).statistics.series(
        range_of(request), split=split, groups=_MOST_GROUPS, **asked
    )


def _link(request: Request, *, path: str = "/charts", **changes: str) -> str:
    """This page with something else chosen."""
    asked = {
        name: value for name, value in request.query_params.items() if name in (*FILTERS, "range", "split")
    }
    asked |= changes
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"{path}?{query}" if query else path


def _values(numbers: MetricNumbers) -> list[str]:
    found = [getattr(numbers, name) for name in _COLUMNS]
    return ["" if value is None else str(round(value, 6)) for value in found]


def _harmless(text: str) -> str:
    """A spreadsheet calculates what begins like a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


routes = [Route("/charts", show), Route("/charts/csv", download)]
