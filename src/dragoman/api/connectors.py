"""`/api/connectors`: add, look, change, switch, remove."""

from fastapi import APIRouter
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, ConnectorChanges, NewConnector, TheHub
from dragoman.api.shapes import (
    BoxHomeShape,
    BoxHomesShape,
    ClearedShape,
    ConnectorShape,
    ConnectorsShape,
    ToolChangesShape,
    changes_view,
    connector_view,
)
from dragoman.web.encoding import json_response

routes = APIRouter(prefix="/api/connectors", tags=["connectors"], responses=PROBLEMS)
_ONE: dict[int | str, dict[str, object]] = {200: {"model": ConnectorShape}}


@routes.get("", responses={200: {"model": ConnectorsShape}})
async def list_connectors(hub: TheHub) -> Response:
    return json_response({"connectors": [connector_view(view) for view in await hub.connectors.list()]})


@routes.post("", status_code=201, responses={201: {"model": ConnectorShape}})
async def add_connector(new: NewConnector, hub: TheHub) -> Response:
    """A server that cannot be reached now is kept, with its cause, and tried again."""
    view = await hub.connectors.add(new.name, **new.facts())
    return json_response(connector_view(view), 201, {"Location": f"/api/connectors/{view.connector.slug}"})


@routes.get("/{slug}", responses=_ONE)
async def get_connector(slug: str, hub: TheHub) -> Response:
    return json_response(connector_view(await hub.connectors.get(slug)))


@routes.patch("/{slug}", responses=_ONE)
async def update_connector(slug: str, changes: ConnectorChanges, hub: TheHub) -> Response:
    return json_response(connector_view(await hub.connectors.update(slug, **changes.facts())))


@routes.delete("/{slug}", status_code=204)
async def remove_connector(slug: str, hub: TheHub) -> Response:
    await hub.connectors.remove(slug)
    return Response(status_code=204)


@routes.get("/{slug}/homes", responses={200: {"model": BoxHomesShape}})
async def list_homes(slug: str, hub: TheHub) -> Response:
    """The homes of its boxes on this machine, with what they hold."""
    homes = await hub.connectors.homes(slug)
    return json_response({"homes": [BoxHomeShape.of(home, path=str(home.path)) for home in homes]})


@routes.delete("/{slug}/homes", responses={200: {"model": ClearedShape}})
async def clear_homes(slug: str, hub: TheHub) -> Response:
    """Removes what its server keeps, and what was fetched for it."""
    return json_response({"bytes": await hub.connectors.clear_homes(slug)})


@routes.post("/{slug}/enable", responses=_ONE)
async def enable_connector(slug: str, hub: TheHub) -> Response:
    return json_response(connector_view(await hub.connectors.enable(slug)))


@routes.post("/{slug}/disable", responses=_ONE)
async def disable_connector(slug: str, hub: TheHub) -> Response:
    return json_response(connector_view(await hub.connectors.disable(slug)))


@routes.post("/{slug}/connect", responses=_ONE)
async def connect_connector(slug: str, hub: TheHub) -> Response:
    """Opens the connection and says how that went: a failure is in the status, with its cause."""
    return json_response(connector_view(await hub.connectors.connect(slug)))


@routes.post("/{slug}/disconnect", responses=_ONE)
async def disconnect_connector(slug: str, hub: TheHub) -> Response:
    return json_response(connector_view(await hub.connectors.disconnect(slug)))


@routes.post("/{slug}/refresh", responses={200: {"model": ToolChangesShape}})
async def refresh_connector(slug: str, hub: TheHub) -> Response:
    """Lists the tools anew and says what changed."""
    return json_response(changes_view(await hub.connectors.refresh(slug)))
