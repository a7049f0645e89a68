"""The first page: how things stand over time, what waits for the person, a newcomer's first steps."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.charts import charts_of, cost, spark
from dragoman.console.connector_list import state_of
from dragoman.console.metrics import RANGES, range_of
from dragoman.console.pages import hub_of, pages_of
from dragoman.hub import BoundHub

_RUNS = 5
_TOP = 6
_WAITING = 3


async def overview(request: Request) -> Response:
    return pages_of(request).page(request, "overview.html", title="Overview", **await _facts(request))


async def show_live(request: Request) -> Response:
    return pages_of(request).part(request, "overview/body.html", **await _facts(request))


async def _facts(request: Request) -> dict[str, Any]:
    hub, last = hub_of(request), range_of(request)
    views = [view for view in await hub.connectors.list() if view.connector.kind != "native"]
    series = await hub.statistics.series(last, split="connector", groups=_TOP)
    errors = sorted(series.groups, key=lambda group: -group.numbers.errors)
    return {
        "series": series,
        "charts": charts_of(series),
        "when": RANGES[last],
        "link": _link,
        "worst": errors[0] if errors and errors[0].numbers.errors else None,
        "connectors": views,
        "by_slug": {view.connector.slug: view for view in views},
        "states": Counter(state_of(view) for view in views),
        "approvals": (await hub.approvals.list())[:_WAITING],
        "questions": (await hub.runs.questions())[:_WAITING],
        "unpriced": await _unpriced(hub) if series.total.unpriced else (),
        "runs": await hub.runs.list(limit=_RUNS),
        "limit": await _money_limit(hub),
        "cost": cost,
        "spark": spark,
    }


def _link(*, range: str) -> str:
    return f"/?range={range}"


async def _unpriced(hub: BoundHub) -> Sequence[str]:
    series = await hub.statistics.series("24h", split="model", with_points=False)
    return [group.name for group in series.groups if group.numbers.unpriced]


async def _money_limit(hub: BoundHub) -> dict[str, float] | None:
    """What the person may spend in a day, and has."""
    uses = (await hub.usage.show()).uses
    found = next((use for use in uses if use.name == "cost_per_day" and use.limit), None)
    return {"used": found.used or 0.0, "limit": found.limit or 0.0} if found else None


routes = [Route("/", overview), Route("/charts/overview", show_live)]
