"""The first page: how things stand, what waits for the person, and the first steps of a newcomer."""

from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, pages_of

_LAST_HOUR = timedelta(hours=1)
_MOST_CALLS = 1000
_MOST_RUNS = 500
_SHOWN = 6


async def overview(request: Request) -> Response:
    hub = hub_of(request)
    since = datetime.now(UTC) - _LAST_HOUR
    calls = [call for call in await hub.calls(_MOST_CALLS) if call.started_at >= since]
    connectors = [view for view in await hub.connectors.list() if view.connector.kind != "native"]
    tools = hub.tools.list()
    runs = await hub.runs.list(limit=_MOST_RUNS)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return pages_of(request).page(
        request,
        "overview.html",
        title="Overview",
        calls=calls,
        errors=[call for call in calls if not call.ok],
        connectors=connectors,
        tools=len(tools),
        approvals=await hub.approvals.list(),
        questions=await hub.runs.questions(),
        runs=runs[:_SHOWN],
        spent=sum(run.usage.cost for run in runs if run.created_at >= midnight),
        agents=[agent for agent in await hub.agents.list() if agent.kind == "worker"],
        models=await hub.models.choose(),
    )


routes = [Route("/", overview)]
