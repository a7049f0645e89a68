"""`/tools`: all of them, found as you type, filtered, a page at a time; and what is done to many at once."""

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
from dragoman.console.listing import Place, page_of
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.submitted_form import filled
from dragoman.errors import DragomanError, InvalidArguments, NotFound, NotInstalled
from dragoman.hub import BoundHub
from dragoman.tool import Tool

_MOST_HITS = 25
_MOST_KEPT = 20
STATES = {"on": "On", "off": "Off", "changes": "Changes data", "reads": "Only reads", "asks": "Asks first"}
SORTS = {"connector": "Connector", "name": "Name"}


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """What somebody looks for. A search has one page, the best first; the list of all has many."""

    text: str
    strategy: str
    connector: str
    state: str
    sort: str

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "ToolQuery":
        state, sort = given.get("state", ""), given.get("sort", "")
        return cls(
            given.get("q", "").strip(),
            given.get("strategy", "") or "hybrid",
            given.get("connector", ""),
            state if state in STATES else "",
            sort if sort in SORTS else "connector",
        )

    def address(self, **changes: str) -> str:
        facts = {"q": self.text, "connector": self.connector, "state": self.state}
        if self.text and self.strategy != "hybrid":
            facts["strategy"] = self.strategy
        if self.sort != "connector":
            facts["sort"] = self.sort
        words = urlencode({name: value for name, value in (facts | changes).items() if value})
        return f"/tools?{words}" if words else "/tools"

    def fits(self, tool: Tool) -> bool:
        match self.state:
            case "on":
                return tool.enabled
            case "off":
                return not tool.enabled
            case "changes":
                return not tool.only_reads
            case "reads":
                return tool.only_reads
            case "asks":
                return tool.approval == "always" or (tool.approval != "never" and not tool.only_reads)
            case _:
                return True

    def place(self, tool: Tool) -> Place:
        return (0.0, tool.name if self.sort == "connector" else f"{tool.original_name} {tool.name}")


class CountedTokens:
    """What all tools of somebody cost in tokens, for as long as the catalogue is the same."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[int, int]] = {}

    async def of(self, hub: BoundHub) -> tuple[int, int]:
        """In all, and of them in a model's view."""
        key = (hub.caller.fingerprint, hub.catalog_version)
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            footprint = await hub.tools.footprint()
            self._kept[key] = (footprint.tokens, footprint.tokens_in_view)
        return self._kept[key]


_counted = CountedTokens()


async def list_tools(request: Request) -> Response:
    """The page; for htmx only what was found, with the address that leads to it again."""
    hub, query = hub_of(request), ToolQuery.of(request.query_params)
    facts = await _found(hub, query, request.query_params.get("after", ""))
    if is_part(request):
        response = pages_of(request).part(request, "tools/found.html", **facts)
        response.headers["hx-replace-url"] = query.address()
        return response
    return pages_of(request).page(
        request, "tools.html", title="Tools", strategies=STRATEGIES, connectors=_connectors(hub), **facts
    )


async def show_footprint(request: Request) -> Response:
    """Counting the tokens of many tools takes its time: the page does not wait for it."""
    tokens, in_view = await _counted.of(hub_of(request))
    return pages_of(request).part(request, "tools/footprint.html", tokens=tokens, in_view=in_view)


async def _found(hub: BoundHub, query: ToolQuery, after: str) -> dict[str, Any]:
    problem: DragomanError | None = None
    names: list[str] = []
    total = len(hub.tools.list())
    scope, strategy, cursor, is_first = total, query.strategy, None, True
    try:
        if query.text:
            found = await hub.tools.search(
                query.text, strategy=query.strategy, limit=_MOST_HITS, connector=query.connector or None
            )
            names = [hit.tool.name for hit in found.hits if query.fits(hit.tool)]
            scope, strategy = found.total, found.question.strategy
        else:
            fitting = [tool for tool in hub.tools.list(query.connector or None) if query.fits(tool)]
            page = page_of(fitting, query.place, after)
            names, scope = [tool.name for tool in page.shown], page.total
            cursor, is_first = page.next, page.is_first
    except (InvalidArguments, NotFound, NotInstalled) as error:
        problem = error
    infos = _infos(hub, names)
    return {
        "wish": query,
        "strategy": strategy,
        "infos": infos,
        "deferred": await hub.tools.deferred_among(infos),
        "scope": scope,
        "total": total,
        "problem": problem,
        "next": cursor,
        "is_first": is_first,
        "states": STATES,
        "sorts": SORTS,
        "policies": get_args(Policy),
    }


def _infos(hub: BoundHub, names: Sequence[str]) -> list[ToolInfo]:
    infos: list[ToolInfo] = []
    for name in names:
        with suppress(NotFound):  # gone while the others were looked for
            infos.append(hub.tools.info(name))
    return infos


def _connectors(hub: BoundHub) -> list[str]:
    """Those that have tools, by name; a tool says whose it is."""
    return sorted({tool.slug for tool in hub.tools.list()})


# Many at once


async def bulk(request: Request) -> Response:
    """By the hub's own methods: what somebody may not do to one, they may not to many."""
    hub, form = hub_of(request), await filled(request)
    names, what = form.many("tool"), form.text("do")
    policy = what.removeprefix("approval:") if what.startswith("approval:") else None
    if what not in ("enable", "disable") and policy not in (*get_args(Policy), ""):
        raise InvalidArguments(
            f"{what[:40]!r} is nothing to do with tools", hint="use the page's own buttons"
        )
    if not names:
        raise InvalidArguments("no tool is chosen", hint="tick those that are meant")
    changed: list[str] = []
    failed: list[str] = []
    for name in names:
        try:
            was_on = hub.tools.get(name).enabled
            if policy is not None:
                await hub.tools.configure(name, approval=policy or None)
            elif was_on != (what == "enable"):
                await (hub.tools.enable if what == "enable" else hub.tools.disable)(name)
                changed.append(name)
        except DragomanError as error:
            failed.append(hub.without_secrets(error.message))
    done = len(names) - len(failed)
    word = {"enable": "turned on", "disable": "turned off"}.get(what, "changed")
    told = f"{done} {'tool' if done == 1 else 'tools'} {word}." if done else ""
    undo = {
        "address": "/tools/-/bulk",
        "sent": {"do": "disable" if what == "enable" else "enable", "tool": " ".join(changed)},
    }
    return pages_of(request).part(
        request,
        "parts/told.html",
        told=" ".join([told, f"{len(failed)} not: {failed[0]}." if failed else ""]).strip(),
        told_kind="warn" if failed else "good",
        undo=undo if changed else None,
    )


routes = [
    Route("/tools", list_tools),
    Route("/tools/-/bulk", bulk, methods=["POST"]),
    Route("/tools/-/footprint", show_footprint),
]
