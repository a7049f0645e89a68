"""`/cluster`: which processes share the installation, what each holds and works on; for who runs it."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, is_part, pages_of


async def show(request: Request) -> Response:
    facts = await _facts(request)
    if is_part(request):
        return pages_of(request).part(request, "cluster/nodes.html", **facts)
    return pages_of(request).page(request, "cluster.html", title="Nodes", **facts)


async def move(request: Request) -> Response:
    """Another node holds the connection from now on; its server is started anew there."""
    form = await request.form()
    connector, to = str(form.get("connector", "")), str(form.get("to", ""))
    await hub_of(request).cluster.move(connector, user=str(form.get("user", "")), to=to or None)
    return pages_of(request).part(request, "cluster/nodes.html", **await _facts(request))


async def _facts(request: Request) -> dict[str, Any]:
    cluster = hub_of(request).cluster
    status = await cluster.status()
    return {"cluster": status, "connections": await cluster.places() if status.is_connected else ()}


routes = [
    Route("/cluster", show),
    Route("/cluster/move", move, methods=["POST"]),
]
