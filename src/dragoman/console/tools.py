"""One tool, looked at and set. How it is tried is in `tool_trials`, how it is found in `tool_list`."""

from collections.abc import Mapping
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.catalog import ToolInfo
from dragoman.connector import Policy
from dragoman.console import tool_list, tool_trials
from dragoman.console.formatting import pretty, said
from dragoman.console.pages import hub_of, pages_of
from dragoman.errors import DragomanError, InvalidArguments
from dragoman.hub import BoundHub
from dragoman.names import dotted_name
from dragoman.scope import Way

_WAYS: Mapping[Way, str] = {
    "direct": "people and programs, directly",
    "agent": "agents",
    "mcp": "MCP clients",
    "code": "code that a model wrote",
}


# One tool


async def show_tool(request: Request) -> Response:
    hub = hub_of(request)
    info = _info(request)
    return pages_of(request).page(
        request,
        "tools/one.html",
        title=dotted_name(info.tool.name),
        **tool_trials.first_form(info.tool),
        **await _about(hub, info),
    )


async def _about(hub: BoundHub, info: ToolInfo) -> dict[str, Any]:
    footprint = await hub.tools.footprint()
    definition = info.tool.definition
    return {
        "info": info,
        "tool": info.tool,
        "versions": [*reversed(await hub.tools.versions(info.tool.name))],
        "deferred": info.tool.name in {tool.name for tool in footprint.tools if tool.deferred},
        "ways": _WAYS,
        "policies": get_args(Policy),
        "input_schema": pretty(definition.input_schema),
        "output_schema": pretty(definition.output_schema) if definition.output_schema else "",
    }


async def switch_tool(request: Request) -> Response:
    """The other way round than it is now, as who clicked saw it."""
    hub, name = hub_of(request), request.path_params["name"]
    wanted = str((await request.form()).get("enabled", ""))
    await (hub.tools.enable if wanted == "true" else hub.tools.disable)(name)
    info = hub.tools.info(name)
    return pages_of(request).part(request, "tools/switch.html", tool=info.tool)


async def accept_tool(request: Request) -> Response:
    """A person has read what changed."""
    hub = hub_of(request)
    await hub.tools.accept(request.path_params["name"])
    return await _changed(request)


async def set_tool(request: Request) -> Response:
    """What is wrong is said beside the form, which stays as it was typed."""
    hub, form = hub_of(request), await request.form()
    approval = str(form.get("approval", ""))
    try:
        await hub.tools.configure(
            request.path_params["name"],
            allowed_callers=[str(way) for way in form.getlist("callers")],
            approval=approval or None,
            required_capabilities=str(form.get("capabilities", "")).replace(",", " ").split(),
            cost=_number(form.get("cost"), "what a call costs"),
            cache_ttl=_number(form.get("cache_ttl"), "how long a result is kept"),
        )
    except DragomanError as error:
        return said(request, error)
    return said(request, "Saved.", "It holds for everybody who uses the tool.")


async def _changed(request: Request) -> Response:
    hub = hub_of(request)
    return pages_of(request).part(request, "tools/about.html", **await _about(hub, _info(request)))


def _info(request: Request) -> ToolInfo:
    return hub_of(request).tools.info(request.path_params["name"])


def _number(value: Any, what: str) -> float:
    try:
        return float(value or 0)
    except ValueError:
        raise InvalidArguments(f"{what} must be a number", hint="0 where there is nothing to say") from None


routes = [
    *tool_list.routes,
    Route("/tools/{name}", show_tool),
    Route("/tools/{name}/switch", switch_tool, methods=["POST"]),
    Route("/tools/{name}/accept", accept_tool, methods=["POST"]),
    Route("/tools/{name}/settings", set_tool, methods=["POST"]),
    *tool_trials.routes,
]
