"""`/registry`: servers of the namespaces that the app follows, what was proposed of them and what is gone."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.connector_list import can_change
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.session_rights import has_scope
from dragoman.console.submitted_form import filled
from dragoman.hub.connectors import ConnectorView
from dragoman.hub.followed_registry import FollowedServer


@dataclass(frozen=True, slots=True)
class FollowedRow:
    """A server, and the connector that was made of it: None where there is none, or no more."""

    server: FollowedServer
    view: ConnectorView | None
    may_enable: bool

    @property
    def has_changed(self) -> bool:
        return bool(self.server.offered) and self.server.offered != self.server.shown


async def show(request: Request) -> Response:
    return pages_of(request).page(request, "registry.html", title="Registry", **await _facts(request))


async def look(request: Request) -> Response:
    await hub_of(request).discovery.look()
    return await _part(request, "The registry was asked just now.")


async def enable(request: Request) -> Response:
    name = (await filled(request)).text("connector")
    view = await hub_of(request).connectors.enable(name)
    return await _part(request, f"{view.connector.slug} is enabled: its tools can be called.")


async def _part(request: Request, told: str) -> Response:
    return pages_of(request).part(request, "registry/list.html", told=told, **await _facts(request))


async def _facts(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    views = {view.connector.slug: view for view in await hub.connectors.list() if not view.connector.owner}
    rows: list[FollowedRow] = []
    for one in await hub.discovery.followed():
        view = views.get(one.connector or "")
        may_enable = (
            view is not None
            and not view.connector.enabled
            and has_scope(request, "manage")
            and can_change(view.connector, hub.caller)
        )
        rows.append(FollowedRow(one, view, may_enable))
    return {
        "rows": rows,
        "namespaces": hub.settings.registry_follow,
        "may_look": hub.caller.role == "operator" and has_scope(request, "manage"),
    }


routes = [
    Route("/registry", show),
    Route("/registry/look", look, methods=["POST"]),
    Route("/registry/enable", enable, methods=["POST"]),
]
