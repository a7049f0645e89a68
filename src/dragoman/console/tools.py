"""Tools: found as you type, looked at and set. How they are tried is in `tool_trials`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.catalog import ToolInfo
from dragoman.catalog.search.query import STRATEGIES
from dragoman.connector import Policy
from dragoman.console import tool_trials
from dragoman.console.formatting import pretty, said
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.errors import DragomanError, InvalidArguments, NotFound, NotInstalled
from dragoman.hub import BoundHub
from dragoman.scope import Way

_PAGE = 100
_MOST_HITS = 25
_WAYS: Mapping[Way, str] = {
    "direct": "people and programs, directly",
    "agent": "agents",
    "mcp": "MCP clients",
    "code": "code that a model wrote",
}


# The list


@dataclass(frozen=True, slots=True)
class _Wish:
    """What somebody looks for. `start` pages through the list of all; a search has one page."""

    text: str
    strategy: str
    connector: str
    start: int

    @classmethod
    def of(cls, request: Request) -> "_Wish":
        given = request.query_params
        start = given.get("start", "0")
        return cls(
            given.get("q", "").strip(),
            given.get("strategy", "") or "hybrid",
            given.get("connector", ""),
            int(start) if start.isdecimal() and len(start) < 7 else 0,
        )

    @property
    def address(self) -> str:
        facts = {"q": self.text, "connector": self.connector}
        if self.text and self.strategy != "hybrid":
            facts["strategy"] = self.strategy
        words = urlencode({name: value for name, value in facts.items() if value})
        return f"/tools?{words}" if words else "/tools"


async def list_tools(request: Request) -> Response:
    """The page; for htmx only what was found, with the address that leads to it again."""
    hub, wish = hub_of(request), _Wish.of(request)
    footprint = await hub.tools.footprint()
    facts = await _found(hub, wish)
    facts["deferred"] = {tool.name for tool in footprint.tools if tool.deferred}
    if is_part(request):
        template = "tools/rows.html" if wish.start else "tools/found.html"
        response = pages_of(request).part(request, template, **facts)
        if not wish.start:
            response.headers["hx-replace-url"] = wish.address
        return response
    return pages_of(request).page(
        request,
        "tools.html",
        title="Tools",
        strategies=STRATEGIES,
        connectors=await hub.connectors.list(),
        footprint=footprint,
        **facts,
    )


async def _found(hub: BoundHub, wish: _Wish) -> dict[str, Any]:
    problem: DragomanError | None = None
    names: list[str] = []
    total = scope = len(hub.tools.list())
    strategy = wish.strategy
    try:
        if wish.text:
            found = await hub.tools.search(
                wish.text, strategy=wish.strategy, limit=_MOST_HITS, connector=wish.connector or None
            )
            names, scope = [hit.tool.name for hit in found.hits], found.total
            strategy = found.question.strategy
        else:
            listed = hub.tools.list(wish.connector or None)
            names, scope = [tool.name for tool in listed[wish.start : wish.start + _PAGE]], len(listed)
    except (InvalidArguments, NotFound, NotInstalled) as error:
        problem = error
    end = wish.start + len(names)
    return {
        "wish": wish,
        "strategy": strategy,
        "infos": _infos(hub, names),
        "scope": scope,
        "total": total,
        "problem": problem,
        "next": end if not wish.text and end < scope else None,
    }


def _infos(hub: BoundHub, names: Sequence[str]) -> list[ToolInfo]:
    infos: list[ToolInfo] = []
    for name in names:
        with suppress(NotFound):  # gone while the others were looked for
            infos.append(hub.tools.info(name))
    return infos


# One tool


async def show_tool(request: Request) -> Response:
    hub = hub_of(request)
    info = _info(request)
    return pages_of(request).page(
        request,
        "tools/one.html",
        title=info.tool.name,
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
    Route("/tools", list_tools),
    Route("/tools/{name}", show_tool),
    Route("/tools/{name}/switch", switch_tool, methods=["POST"]),
    Route("/tools/{name}/accept", accept_tool, methods=["POST"]),
    Route("/tools/{name}/settings", set_tool, methods=["POST"]),
    *tool_trials.routes,
]
