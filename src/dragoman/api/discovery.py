"""`/api/discover`: servers that the registry offers, and the taking of one."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.responses import Response

from dragoman.api.imports import RequiredInputShape
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.shapes import ConnectorShape, connector_view
from dragoman.discovery import RegistryServer
from dragoman.hub import ConnectorView
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api/discover", tags=["discovery"], responses=PROBLEMS)
aliases = APIRouter(tags=["connectors"], responses=PROBLEMS)


class InstallMethodShape(Shape):
    """`shown` is the exact command or URL, with `<name>` where an input goes."""

    kind: str
    shown: str
    needs: list[RequiredInputShape]
    warnings: list[str]


class RegistryServerShape(Shape):
    name: str
    title: str
    description: str
    version: str
    status: str
    website: str
    slug: str
    ways: list[InstallMethodShape]
    refused: list[str]


class RegistryServersShape(Shape):
    offers: list[RegistryServerShape]
    next_cursor: str | None
    skipped: list[str]


class FollowedServerShape(Shape):
    """`proposed` is a disabled connector, `enabled` one that the app lets run; `listed` asks for something,
    `refused` cannot be added. `shown` is the exact command or URL, `offered` what the registry has now.
    """

    name: str
    description: str
    version: str
    state: str
    shown: str
    offered: str
    asks: list[str]
    why: str
    connector: str | None
    is_gone: bool
    since: datetime


class FollowedServersShape(Shape):
    followed: list[FollowedServerShape]


class CommonServersShape(Shape):
    """`groups` has the servers of each group, which are added by their `name` like those of the registry."""

    groups: dict[str, list[RegistryServerShape]]


class ActionServerShape(Shape):
    name: str
    slug: str
    kind: str
    description: str
    url: str | None
    enabled: bool
    state: str
    tools: int


class ActionServersShape(Shape):
    action_servers: list[ActionServerShape]


class InstallRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    shown: str = Field(description="the way, exactly as it was shown")
    inputs: dict[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    connector: str | None = Field(default=None, max_length=200, description="a name of your own")
    connect: bool = True


@routes.get("", responses={200: {"model": RegistryServersShape}})
async def discover(
    hub: TheHub,
    search: Annotated[str, Query(max_length=200)] = "",
    cursor: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 30,
) -> Response:
    """One page of what the registry offers. Nothing runs."""
    page = await hub.discovery.search(search, cursor=cursor, limit=limit)
    offers = [server_view(offer) for offer in page.offers]
    return json_response({"offers": offers, "next_cursor": page.next_cursor, "skipped": list(page.skipped)})


@routes.get("/followed", responses={200: {"model": FollowedServersShape}})
async def list_followed(hub: TheHub) -> Response:
    """Servers of the namespaces that the app follows: what was proposed, and what is gone."""
    return json_response(
        {"followed": [FollowedServerShape.of(one) for one in await hub.discovery.followed()]}
    )


@routes.get("/common", responses={200: {"model": CommonServersShape}})
async def list_common_servers(hub: TheHub) -> Response:
    """Servers that many people add, and what each asks for. No registry is asked."""
    groups = {
        group: [server_view(one) for one in servers] for group, servers in hub.discovery.common().items()
    }
    return json_response({"groups": groups})


@routes.get("/{name:path}", responses={200: {"model": RegistryServerShape}})
async def get_registry_server(name: str, hub: TheHub) -> Response:
    return json_response(server_view(await hub.discovery.get(name)))


@routes.post("/{name:path}", status_code=201, responses={201: {"model": ConnectorShape}})
async def install_server(name: str, wanted: InstallRequest, hub: TheHub) -> Response:
    """Adds a connector by the way that was shown."""
    view = await hub.discovery.add(
        name,
        shown=wanted.shown,
        inputs={key: value.get_secret_value() for key, value in wanted.inputs.items()},
        connector=wanted.connector,
        connect=wanted.connect,
    )
    return json_response(connector_view(view), 201, {"Location": f"/api/connectors/{view.connector.slug}"})


@aliases.get("/action-servers/available", responses={200: {"model": ActionServersShape}})
async def list_action_servers(hub: TheHub) -> Response:
    """The same connectors as `/api/connectors`, by the name that some callers know them by."""
    views = [view for view in await hub.connectors.list() if view.connector.kind != "native"]
    return json_response({"action_servers": [_action_server(view) for view in views]})


def server_view(offer: RegistryServer) -> RegistryServerShape:
    return RegistryServerShape.of(offer)


def _action_server(view: ConnectorView) -> ActionServerShape:
    connector = view.connector
    return ActionServerShape.of(
        connector,
        name=next(iter(connector.aliases), connector.slug),
        url=connector.configuration.openapi or connector.configuration.url,
        state=view.status.state,
        tools=view.tools,
    )
