"""Ctrl-K: pages, connectors, tools, agents, chats, runs and actions by what is typed. The server searches."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.agents import address_of
from dragoman.console.connector_list import can_change, reached_by
from dragoman.console.pages import hub_of, pages_of, places_of
from dragoman.console.places import PLACES
from dragoman.errors import NotFound
from dragoman.hub import BoundHub, ConnectorView
from dragoman.names import dotted_name
from dragoman.tool import Tool

GROUPS: Mapping[str, str] = {
    "pages": "Pages",
    "connectors": "Connectors",
    "actions": "Actions",
    "tools": "Tools",
    "agents": "Agents",
    "chats": "Chats",
    "runs": "Runs",
}
_FEW, _MANY = 5, 30
# Looked through for what is typed; their own pages look through all.
_NEWEST_RUNS, _NEWEST_CHATS = 10_000, 1000
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class PaletteItem:
    """One line. `address` is opened; with `post` these values are sent to it instead."""

    title: str
    address: str
    icon: str
    detail: str = ""
    state: str = ""
    chip: str = ""
    when: Any = None
    post: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PaletteGroup:
    """`count` is how many there are in all, where that is known."""

    kind: str
    items: Sequence[PaletteItem]
    count: int | None = None

    @property
    def label(self) -> str:
        return GROUPS[self.kind]


# What can be done from anywhere.
_ACTIONS = (
    PaletteItem("New chat", "/chat", "chat"),
    PaletteItem("Add connector", "/connectors/new", "plus"),
    PaletteItem("Paste mcpServers", "/connectors/new?by=paste", "plus", "from your editor's settings"),
    PaletteItem("New agent", "/agents/new", "plus"),
    PaletteItem("New API key", "/keys", "key"),
    PaletteItem("Show failed connectors", "/connectors?state=failed", "warn"),
    PaletteItem("Show failed runs", "/runs?status=failed", "warn"),
    PaletteItem("Sign out", "/sign-out", "out", post={}),
)


class Wanted:
    """What was typed: every word must be in a text, and a title that begins so comes first."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text[:_LONGEST].split())
        self._words = self.text.lower().split()
        self._pattern = re.compile("|".join(map(re.escape, self._words)), re.IGNORECASE)

    def fits(self, *texts: str) -> bool:
        whole = "\n".join(texts).lower()
        for word in self._words:  # noqa: SIM110 - half as dear as `all` for 50,000 tools
            if word not in whole:
                return False
        return True

    def rank(self, title: str) -> tuple[bool, bool, str]:
        """The smaller, the better."""
        title = title.lower()
        begins = bool(self._words) and title.startswith(self._words[0])
        return (not begins, not self.fits(title), title)

    def nearest(self, tools: Sequence[Tool], most: int) -> tuple[list[Tool], int]:
        """The same for very many, which are in order: the best of those whose name fits, and how many fit."""
        first, *others = self._words or [""]
        named = [tool for tool in tools if first in tool.name.lower()]
        for word in others:
            named = [tool for tool in named if word in tool.name.lower()]
        begin = [tool for tool in named if tool.definition.original_name.lower().startswith(first)]
        best = [*{tool.name: tool for tool in (*begin[:most], *named[:most])}.values()]
        return best[:most], len(named)

    def marked(self, title: str) -> Markup:
        if not self._words:
            return escape(title)
        parts: list[Markup] = []
        last = 0
        for found in self._pattern.finditer(title):
            parts += [escape(title[last : found.start()]), Markup("<mark>{}</mark>").format(found[0])]
            last = found.end()
        return Markup("").join([*parts, escape(title[last:])])


async def show(request: Request) -> Response:
    wanted = Wanted(request.query_params.get("q", ""))
    kind = request.query_params.get("kind", "")
    groups = await _groups(request, wanted, kind if kind in GROUPS else "")
    return pages_of(request).part(request, "palette/found.html", groups=groups, wanted=wanted, kind=kind)


async def _groups(request: Request, wanted: Wanted, only: str) -> list[PaletteGroup]:
    hub = hub_of(request)
    most = _MANY if only else _FEW
    views = [one for one in await hub.connectors.list() if one.connector.kind != "native"]
    connectors = _connectors(views, wanted) if wanted.text or only == "connectors" else []
    found = [
        PaletteGroup("pages", _pages(request, wanted)),
        PaletteGroup("connectors", connectors[:most], len(connectors)),
        PaletteGroup("actions", _actions(hub, views, wanted)[: most + 2]),
    ]
    if wanted.text or only == "tools":
        found.append(await _tools(hub, wanted, most))
    if wanted.text or only == "agents":
        found.append(PaletteGroup("agents", (await _agents(hub, wanted))[:most]))
    # Both look through long tables: at the same time.
    chats, runs = await asyncio.gather(_chats(hub, wanted, most), _runs(hub, wanted, most))
    found += [PaletteGroup("chats", chats), PaletteGroup("runs", runs)]
    if only:
        # The others only say how many they are: their button stays where it was.
        return [one if one.kind == only else replace(one, items=()) for one in found]
    return [one for one in found if one.items]


def _ranked(items: Iterable[PaletteItem], wanted: Wanted) -> list[PaletteItem]:
    return sorted(items, key=lambda one: wanted.rank(one.title)) if wanted.text else [*items]


def _pages(request: Request, wanted: Wanted) -> list[PaletteItem]:
    places = [one for one in places_of(hub_of(request)) if wanted.fits(one.title, one.group)]
    items = [PaletteItem(one.title, one.path, one.icon) for one in places]
    return _ranked(items, wanted) if wanted.text else items[: len(PLACES) // 3]


def _connectors(views: Sequence[ConnectorView], wanted: Wanted) -> list[PaletteItem]:
    items: list[PaletteItem] = []
    for view in views:
        connector = view.connector
        reached = reached_by(connector)
        if wanted.fits(connector.slug, connector.description, reached, *connector.aliases):
            state = view.status.state if connector.enabled else "disabled"
            items.append(
                PaletteItem(connector.slug, f"/connectors/{connector.slug}", "plug", reached, state=state)
            )
    return _ranked(items, wanted)


def _actions(hub: BoundHub, views: Sequence[ConnectorView], wanted: Wanted) -> list[PaletteItem]:
    items = [one for one in _ACTIONS if wanted.fits(one.title, one.detail)]
    if wanted.text:
        for view in views:
            if can_change(view.connector, hub.caller):
                items += [one for one in _deeds(view) if wanted.fits(one.title)]
    return _ranked(items, wanted)


def _deeds(view: ConnectorView) -> list[PaletteItem]:
    """What can be done with one connector, by the same door as with many."""
    slug, address = view.connector.slug, "/connectors/-/bulk"

    def deed(title: str, what: str, icon: str) -> PaletteItem:
        return PaletteItem(title, address, icon, post={"do": what, "slug": slug})

    if not view.connector.enabled:
        return [deed(f"Turn on {slug}", "enable", "power")]
    return [
        deed(f"Reconnect {slug}", "reconnect", "again"),
        deed(f"Refresh tools of {slug}", "refresh", "tool"),
        deed(f"Turn off {slug}", "disable", "pause"),
    ]


async def _tools(hub: BoundHub, wanted: Wanted, most: int) -> PaletteGroup:
    """By their names; where none has the words, by what they do."""
    best, number = wanted.nearest(hub.tools.list(), most)
    count: int | None = number
    if not best and wanted.text:
        found = await hub.tools.search(wanted.text, limit=most)
        best, count = [hit.tool for hit in found.hits], None
    items = [
        PaletteItem(
            dotted_name(tool.name) if tool.is_mcp else tool.name,
            f"/tools/{tool.name}",
            "tool",
            tool.definition.title or tool.definition.description,
            chip="" if tool.only_reads else "changes data",
        )
        for tool in best
    ]
    return PaletteGroup("tools", items, count)


async def _agents(hub: BoundHub, wanted: Wanted) -> list[PaletteItem]:
    agents = [one for one in await hub.agents.list() if wanted.fits(one.name, one.description)]
    items = [PaletteItem(one.name, address_of(one), "robot", one.description) for one in agents]
    return _ranked(items, wanted)


async def _chats(hub: BoundHub, wanted: Wanted, most: int) -> list[PaletteItem]:
    threads = await hub.threads.listed(most, query=wanted.text, among=_NEWEST_CHATS)
    return [
        PaletteItem(one.title or "(no title)", f"/chat/{one.id}", "chat", when=one.updated_at)
        for one in threads
    ]


async def _runs(hub: BoundHub, wanted: Wanted, most: int) -> list[PaletteItem]:
    if not wanted.text:
        return []
    runs = await hub.runs.list(query=wanted.text, among=_NEWEST_RUNS, limit=most)
    return [
        PaletteItem(
            one.request or "(no text)",
            f"/runs/{one.id}",
            "steps",
            one.agent or "several",
            state=one.status,
            when=one.created_at,
        )
        for one in runs
    ]


# Pickers


async def pick(request: Request) -> Response:
    """What a field can be filled with, as the options of its list."""
    hub, asked = hub_of(request), request.query_params
    wanted = Wanted(asked.get(asked.get("field", ""), ""))
    kind = request.path_params["kind"]
    if kind == "connectors":
        slugs = [view.connector.slug for view in await hub.connectors.list() if view.tools]
        options = [(slug, "") for slug in slugs if wanted.fits(slug)]
    elif kind == "agents":
        options = [
            (one.name, one.description[:80]) for one in await hub.agents.list() if wanted.fits(one.name)
        ]
    elif kind == "chats":
        threads = await hub.threads.listed(_MANY, query=wanted.text)
        options = [(one.id, one.title or one.id) for one in threads]
    else:
        raise NotFound(f"there is nothing called {kind[:40]!r} to choose from")
    return pages_of(request).part(request, "palette/options.html", options=options[:_MANY])


routes = [Route("/palette", show), Route("/palette/pick/{kind}", pick)]
