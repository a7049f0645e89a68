"""Call records, kept results, the event stream, health and readiness."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dragoman.api.events import event_stream, hub_frames
from dragoman.api.probes import health, readiness
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.shapes import CallsShape, HealthShape, call_view
from dragoman.errors import NotFound
from dragoman.hub import BoundHub
from dragoman.hub.cluster import ClusterStatus
from dragoman.telemetry.prometheus import (
    CONTENT_TYPE,
    ConnectorState,
    Gauge,
    PrometheusExposition,
    memory_in_use,
)
from dragoman.web.encoding import json_response
from dragoman.web.problems import WrongRange

routes = APIRouter(prefix="/api", tags=["operations"], responses=PROBLEMS)
probes = APIRouter(tags=["probes"])


@routes.get("/calls", responses={200: {"model": CallsShape}})
async def list_calls(hub: TheHub, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
    """The last calls, newest first; neither arguments nor results are remembered."""
    return json_response({"calls": [call_view(record) for record in await hub.calls(limit)]})


@routes.get("/results/{handle}", responses={200: {"content": {"*/*": {}}}, 206: {"content": {"*/*": {}}}})
async def get_result(
    handle: str,
    hub: TheHub,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int | None, Query(ge=1)] = None,
) -> Response:
    """The whole of a result that was cut, or `limit` bytes of it from `offset` on."""
    kept = await hub.result(handle)
    # Written by somebody else's server: never to be run as a page of this one.
    headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}
    size = len(kept.body)
    if not offset and (limit is None or limit >= size):
        return Response(kept.body, 200, headers, media_type=kept.content_type)
    if offset >= size:
        raise WrongRange(f"the result has {size:,} bytes", hint=f"offset must be less than {size}")
    part = kept.body[offset : None if limit is None else offset + limit]
    headers["Content-Range"] = f"bytes {offset}-{offset + len(part) - 1}/{size}"
    return Response(part, 206, headers, media_type=kept.content_type)


@routes.get("/events", responses={200: {"content": {"text/event-stream": {}}}})
async def follow_events(request: Request, hub: TheHub) -> Response:
    """What happens from now on, as server-sent events."""
    return event_stream(request, hub_frames(hub))


@probes.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
async def get_metrics(hub: TheHub) -> Response:
    """For Prometheus: numbers of every workspace, so for the operator only."""
    if hub.caller.role != "operator":
        raise NotFound("there is nothing at /metrics", hint="the operator's token opens it")
    of_all = await hub.installation_metrics()
    exposition = PrometheusExposition(
        hub.metrics,
        lambda: of_all,
        lambda: [ConnectorState(hub.workspace_of(link), link.slug, link.state) for link in hub.links()],
        lambda: hub.dropped_records,
        [*_process_gauges(hub), *_cluster_gauges(await hub.cluster.status())],
    )
    return Response(exposition.text(), headers={"Content-Type": CONTENT_TYPE})


def _process_gauges(hub: BoundHub) -> Iterator[Gauge]:
    readied = hub.readied_agents
    yield Gauge(
        name="agents_readied",
        text="Times an agent was made ready for a run: model, way to tools, instructions",
        value=readied.count,
        only_grows=True,
    )
    yield Gauge(
        name="agents_readied_seconds",
        text="How long that took, added up",
        value=readied.seconds,
        only_grows=True,
    )
    yield Gauge(name="process_memory_bytes", text="Memory that this process holds", value=memory_in_use())


def _cluster_gauges(status: ClusterStatus) -> Iterator[Gauge]:
    (node,) = (one for one in status.nodes if one.id == status.node)
    yield Gauge(
        name="node_info",
        text="This process: its version and roles",
        value=1,
        labels={"node": node.id, "version": node.version, "roles": ",".join(node.roles)},
    )
    yield Gauge(
        name="cluster_nodes",
        text="Processes that this one knows to live, with itself",
        value=len(status.nodes),
    )
    yield Gauge(
        name="cluster_connected",
        text="Whether this process is connected to NATS; 1 where no cluster is set",
        value=status.is_connected or not status.is_clustered,
    )
    yield Gauge(
        name="places_held",
        text="Connections with state that this process holds for all nodes",
        value=status.places.held,
    )
    for name, text in (
        ("moved", "Connections with state that this process gave to another, by hand or to balance"),
        ("lost", "Connections with state that this process closed because it lost its lease"),
        ("taken_over", "Connections with state that this process took from one that was gone"),
    ):
        yield Gauge(name=f"places_{name}", text=text, value=getattr(status.places, name), only_grows=True)
    yield Gauge(name="runs_at_work", text="Runs that this process executes", value=status.runs_at_work)
    if status.runs_waiting is not None and status.longest_wait is not None:
        yield Gauge(
            name="installation_runs_waiting",
            text="Runs that could begin and wait for a process; the same at every process",
            value=status.runs_waiting,
        )
        yield Gauge(
            name="installation_runs_waiting_seconds",
            text="How long the first of them has waited; the same at every process",
            value=status.longest_wait,
        )


# `Api` answers these two by itself; what they are is described here.
@probes.get("/health", responses={200: {"model": HealthShape}})
async def get_health() -> Response:
    """The process lives. Needs no token."""
    return health()


@probes.get("/ready", responses={200: {"model": HealthShape}, 503: {"description": "It cannot work now"}})
async def get_readiness(hub: TheHub) -> Response:
    """It can work: its store answers, and nothing that must go on here has ended. Needs no token."""
    return await readiness(hub)
