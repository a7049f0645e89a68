"""Connectors: how each does, switching, mending, removing. Adding and changing is `connector_editing`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.catalog import ToolChanges
from dragoman.connections.source import ConnectionStatus
from dragoman.connector import Connector
from dragoman.console import connector_boxes, connector_content, connector_editing, connector_list
from dragoman.console.agents import address_of
from dragoman.console.charts import calls_chart, latency_chart
from dragoman.console.connector_forms import chosen_settings
from dragoman.console.connector_list import can_change
from dragoman.console.metrics import RANGES, range_of
from dragoman.console.pages import hub_of, pages_of
from dragoman.hub import BoundHub, ConnectorView
from dragoman.scope import holder_of
from dragoman.tool import DEFAULT_CALLERS, Tool

_MOST_CALLS = 500
_LAST_CALLS = 8


TABS = {
    "overview": "Overview",
    "tools": "Tools",
    "resources": "Resources",
    "prompts": "Prompts",
    "logs": "Logs",
    "settings": "Settings",
    "access": "Access",
}
_OF_SERVERS = ("resources", "prompts")
_NOT_OF_NATIVE = ("resources", "prompts", "logs", "settings")
_MOST_LOGGED = 50


@dataclass(frozen=True, slots=True)
class _Held:
    """One connection and for whom it is held; `user` is empty where a workspace shares it."""

    workspace: str
    user: str
    link: ConnectionStatus


async def switch_connector(request: Request) -> Response:
    """From its card."""
    hub, slug = hub_of(request), request.path_params["slug"]
    wanted = str((await request.form()).get("enabled", ""))
    await (hub.connectors.enable if wanted == "true" else hub.connectors.disable)(slug)
    return await connector_list.list_connectors(request)


# One of them


async def show_connector(request: Request) -> Response:
    hub, slug = hub_of(request), request.path_params["slug"]
    view = await hub.connectors.get(slug)
    connector, last = view.connector, range_of(request)
    tab = request.query_params.get("tab", "")
    series = await hub.statistics.series(last, connector=connector.slug)
    return pages_of(request).page(
        request,
        "connectors/one.html",
        title=connector.slug,
        tabs={name: text for name, text in TABS.items() if _has_tab(connector, name)},
        tab=tab if tab in TABS else "overview",
        series=series,
        charts=(latency_chart(series, _down_since(view)), calls_chart(series)),
        when=RANGES[last],
        link=partial(_link, slug),
        tools=[hub.tools.info(tool.name) for tool in hub.tools.list(slug)] if tab == "tools" else (),
        chosen=chosen_settings(connector),
        **(await _access(hub, connector) if tab == "access" else {}),
        agent=await hub.agents.find_for(connector.id),
        credential=await hub.credentials.get(slug) if connector.configuration.personal_secrets else None,
        **await _live(hub, view),
    )


def _down_since(view: ConnectorView) -> datetime | None:
    return view.status.since if view.status.state in ("error", "reconnecting") else None


async def show_live(request: Request) -> Response:
    hub = hub_of(request)
    view = await hub.connectors.get(request.path_params["slug"])
    return await _part(request, view)


async def _live(hub: BoundHub, view: ConnectorView) -> dict[str, Any]:
    connector = view.connector
    calls = [call for call in await hub.calls(_MOST_CALLS) if call.connector_id == connector.id]
    tools = hub.tools.list(connector.slug)
    held = _held(hub, connector)
    may_change = can_change(connector, hub.caller)
    return {
        "view": view,
        "connector": connector,
        "configuration": connector.configuration,
        "calls": calls[:_LAST_CALLS],
        "all_calls": calls[:_MOST_LOGGED],
        "held": held,
        "names": {one.user: await hub.people.name_of(one.workspace, one.user) for one in held if one.user},
        "can_change": may_change,
        "needs": await hub.connectors.needs(connector.slug) if may_change else (),
        "changed": [tool for tool in tools if tool.awaits_acceptance(connector.configuration.pin)],
        "tokens": sum(hub.tools.info(tool.name).tokens for tool in tools),
        "now": datetime.now(UTC),
    }


def _has_tab(connector: Connector, name: str) -> bool:
    """Functions of the program have tools alone, and only MCP servers have resources and prompts."""
    if connector.kind == "native":
        return name not in _NOT_OF_NATIVE
    return connector.kind == "mcp" or name not in _OF_SERVERS


async def _access(hub: BoundHub, connector: Connector) -> dict[str, Any]:
    agents = [one for one in await hub.agents.list() if one.kind == "worker"]
    found = [(tool, differences(tool)) for tool in hub.tools.list(connector.slug)]
    return {
        "agents": [one for one in agents if connector.slug in (one.connectors or ())],
        "address_of": address_of,
        "overrides": [(tool, words) for tool, words in found if words],
    }


def differences(tool: Tool) -> list[str]:
    """What was decided about a tool alone."""
    words = [] if tool.enabled else ["off"]
    if tool.approval:
        words.append({"never": "never asks", "always": "always asks"}.get(tool.approval, "asks as usual"))
    if tool.allowed_callers != DEFAULT_CALLERS:
        words.append(f"called by {', '.join(sorted(tool.allowed_callers)) or 'nobody'}")
    if tool.required_capabilities:
        words.append(f"needs {', '.join(sorted(tool.required_capabilities))}")
    if tool.cost:
        words.append(f"${tool.cost:g} a call")
    if tool.cache_ttl:
        words.append(f"kept for {tool.cache_ttl:g} s")
    return words


def _link(slug: str, *, range: str) -> str:
    return f"/connectors/{slug}?range={range}"


def _held(hub: BoundHub, connector: Connector) -> list[_Held]:
    """Members see their own, admins those of their workspace, who runs the installation all."""
    held = [
        _Held(*holder_of(link.identity), link)
        for link in hub.known_links()
        if link.connector_id == connector.id
    ]
    if hub.caller.role == "operator":
        return held
    ours = [one for one in held if one.workspace == hub.caller.workspace]
    return ours if hub.caller.is_admin else [one for one in ours if one.user in ("", hub.caller.user)]


async def act(request: Request) -> Response:
    """What a button of its page does; the page then shows how that went."""
    hub, slug = hub_of(request), request.path_params["slug"]
    connectors = hub.connectors
    match request.path_params["action"]:
        case "enable":
            view = await connectors.enable(slug)
        case "disable":
            view = await connectors.disable(slug)
        case "connect":
            view = await connectors.connect(slug)
        case "disconnect":
            view = await connectors.disconnect(slug)
        case "reconnect":
            await connectors.disconnect(slug)
            view = await connectors.connect(slug)
        case _:
            return await _relist(request)
    return await _part(request, view)


async def _relist(request: Request) -> Response:
    hub, slug = hub_of(request), request.path_params["slug"]
    changes = await hub.connectors.refresh(slug)
    return await _part(request, await hub.connectors.get(slug), changes)


async def _part(request: Request, view: ConnectorView, changes: ToolChanges | None = None) -> Response:
    live = await _live(hub_of(request), view)
    return pages_of(request).part(request, "connectors/live.html", **live, changes=changes)


async def remove_connector(request: Request) -> Response:
    await hub_of(request).connectors.remove(request.path_params["slug"])
    return Response(status_code=204, headers={"hx-redirect": "/connectors"})


async def authorise(request: Request) -> Response:
    """To the page that says who is about to connect what, and on to the authorisation server."""
    address = str(request.base_url).rstrip("/")
    slug = request.path_params["slug"]
    link = await hub_of(request).credentials.authorize(slug, address=address)
    return Response(status_code=204, headers={"hx-redirect": link.url})


routes = [
    *connector_list.routes,
    *connector_editing.routes,
    *connector_boxes.routes,
    *connector_content.routes,
    Route("/connectors/{slug}", show_connector),
    Route("/connectors/{slug}/live", show_live),
    Route("/connectors/{slug}/switch", switch_connector, methods=["POST"]),
    Route("/connectors/{slug}/remove", remove_connector, methods=["POST"]),
    Route("/connectors/{slug}/authorise", authorise, methods=["POST"]),
    Route("/connectors/{slug}/act/{action}", act, methods=["POST"]),
]
