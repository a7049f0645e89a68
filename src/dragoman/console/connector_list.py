"""`/connectors`: all of them, found, filtered and sorted, a page at a time; and what is done to many."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, get_args
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.connector import Connector, Policy
from dragoman.console.charts import spark
from dragoman.console.listing import ListPage, Place, has_words, page_of
from dragoman.console.many_at_once import do_to_many
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.submitted_form import filled
from dragoman.errors import InvalidArguments
from dragoman.hub import BoundHub, ConnectorView
from dragoman.scope import Caller

STATES: Mapping[str, tuple[str, str]] = {
    "connected": ("Connected", "good"),
    "idle": ("Idle", ""),
    "new": ("Never connected", ""),
    "connecting": ("Connecting", "warn"),
    "reconnecting": ("Reconnecting", "warn"),
    "sign-in": ("Needs sign-in", "warn"),
    "failed": ("Failed", "bad"),
    "off": ("Off", ""),
}
"""Each state with its word and its colour."""
TYPES = {"local": "Local", "remote": "Remote", "openapi": "OpenAPI"}
OWNERS = {"me": "You", "workspace": "Everyone", "installation": "Installation"}
SORTS = {"name": "Name", "calls": "Calls", "errors": "Errors", "p95": "p95", "tools": "Tools"}
VIEWS = ("table", "cards")
_LAUNCHERS = frozenset({"npx", "uvx", "bunx", "pipx", "uv", "node", "python", "python3", "docker", "deno"})
_MOST_TOLD = 3


def state_of(view: ConnectorView) -> str:
    """One word for how a connector does: what was never reached does not work yet."""
    state = view.status.state
    if not view.connector.enabled or state == "disabled":
        return "off"
    if state == "disconnected":
        return "idle" if view.catalog == "ready" else "new"
    return {"error": "failed", "needs_auth": "sign-in"}.get(state, state)


def can_change(connector: Connector, caller: Caller) -> bool:
    """Whether the hub would let them: what somebody may not do is not offered."""
    if connector.owner:
        return connector.owner == caller.user
    return caller.role == "operator" or (caller.is_admin and bool(connector.workspace))


def type_of(connector: Connector) -> str:
    if connector.kind == "openapi":
        return "openapi"
    return "remote" if connector.configuration.url else "local"


def owner_of(connector: Connector) -> str:
    if connector.owner:
        return "me"
    return "workspace" if connector.workspace else "installation"


def reached_by(connector: Connector) -> str:
    """The host of a server out there, or the program that is started here."""
    configuration = connector.configuration
    address = configuration.url or configuration.openapi
    if address:
        return urlsplit(address).netloc or address
    program = PurePath(configuration.command or "").name
    if program.removesuffix(".exe").rstrip("0123456789.") in _LAUNCHERS:
        words = [
            word for word in configuration.args if not word.startswith("-") and word not in ("run", "dlx")
        ]
        program = (
            (PurePath(words[0]).name if words and words[0].startswith("/") else words[0])
            if words
            else program
        )
    return program


@dataclass(frozen=True, slots=True)
class ConnectorSearch:
    """What somebody looks for. Words that mean nothing here are left out, not refused."""

    text: str = ""
    state: str = ""
    type: str = ""
    owner: str = ""
    sort: str = "name"
    view: str = "table"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "ConnectorSearch":
        def one_of(name: str, known: Sequence[str] | Mapping[str, Any], default: str = "") -> str:
            value = given.get(name, "")
            return value if value in known else default

        return cls(
            " ".join(given.get("q", "")[:200].split()),
            one_of("state", STATES),
            one_of("type", TYPES),
            one_of("owner", OWNERS),
            one_of("sort", SORTS, "name"),
            one_of("view", VIEWS, "table"),
        )

    def address(self, **changes: str) -> str:
        """This list, with another state or sort, or from another place on."""
        words = self.words(**changes)
        return f"/connectors?{words}" if words else "/connectors"

    def words(self, **changes: str) -> str:
        """The same as what follows the question mark."""
        facts = {"q": self.text, "state": self.state, "type": self.type, "owner": self.owner}
        facts |= {
            "sort": self.sort if self.sort != "name" else "",
            "view": "" if self.view == "table" else self.view,
        }
        return urlencode({name: value for name, value in (facts | changes).items() if value})

    def fits(self, view: ConnectorView) -> bool:
        """All but the state, of which each has its own count."""
        connector = view.connector
        if self.type not in ("", type_of(connector)) or self.owner not in ("", owner_of(connector)):
            return False
        if not self.text:
            return True
        configuration = connector.configuration
        known = (connector.slug, connector.description, *connector.aliases, configuration.url or "",
                 configuration.openapi or "", configuration.command or "", *configuration.args)  # fmt: skip
        return has_words("\n".join(known), self.text.lower().split())

    def place(self, view: ConnectorView) -> Place:
        metrics = view.metrics
        number = {
            "calls": metrics.calls,
            "errors": metrics.failed / metrics.calls if metrics.calls else 0,
            "p95": metrics.p95_ms or 0,
            "tools": view.tools,
        }.get(self.sort, 0)
        return (-float(number), view.connector.slug)


async def list_connectors(request: Request) -> Response:
    facts = await _facts(request)
    if is_part(request):
        return pages_of(request).part(request, "connectors/list.html", **facts)
    return pages_of(request).page(request, "connectors.html", title="Connectors", **facts)


async def _facts(request: Request) -> dict[str, Any]:
    hub, asked = hub_of(request), request.query_params
    query = ConnectorSearch.of(asked)
    views = [view for view in await hub.connectors.list() if view.connector.kind != "native"]
    fitting = [view for view in views if query.fits(view)]
    states = Counter(state_of(view) for view in fitting)
    found = [view for view in fitting if query.state in ("", state_of(view))]
    page = page_of(found, query.place, asked.get("after", ""))
    return {
        "query": query,
        "page": page,
        "states": states,
        "all_states": STATES,
        "fitting": len(fitting),
        "count": len(views),
        "tools": sum(view.tools for view in views),
        "works": sum(state_of(view) in ("connected", "idle") for view in views),
        "here": asked.get("after", ""),
        "types": TYPES,
        "owners": OWNERS,
        "sorts": SORTS,
        "policies": get_args(Policy),
        "state_of": state_of,
        "type_of": type_of,
        "owner_of": owner_of,
        "reached_by": reached_by,
        "changeable": {view.connector.id for view in page.shown if can_change(view.connector, hub.caller)},
        "lines": await _lines(hub, page),
        "tokens": _tokens(hub, page) if query.view == "cards" else {},
        "now": datetime.now(UTC),
    }


async def _lines(hub: BoundHub, page: ListPage[ConnectorView]) -> Mapping[str, str]:
    """Calls of the last day, of those that are shown."""
    slugs = [view.connector.slug for view in page.shown if view.metrics.calls]
    if not slugs:
        return {}
    series = await hub.statistics.series("24h", split="connector", connector=slugs)
    return {group.name: spark(group.points) for group in series.groups}


def _tokens(hub: BoundHub, page: ListPage[ConnectorView]) -> Mapping[str, int]:
    slugs = [view.connector.slug for view in page.shown]
    return {slug: sum(hub.tools.info(tool.name).tokens for tool in hub.tools.list(slug)) for slug in slugs}


# Many at once


async def _reconnect(hub: BoundHub, slug: str) -> None:
    await hub.connectors.disconnect(slug)
    await hub.connectors.connect(slug)


_DEEDS: Mapping[str, tuple[str, Callable[[BoundHub, str], Awaitable[Any]]]] = {
    "enable": ("turned on", lambda hub, slug: hub.connectors.enable(slug)),
    "disable": ("turned off", lambda hub, slug: hub.connectors.disable(slug)),
    "reconnect": ("connected again", _reconnect),
    "refresh": ("refreshed", lambda hub, slug: hub.connectors.refresh(slug)),
    "remove": ("removed", lambda hub, slug: hub.connectors.remove(slug)),
    "defer": ("deferred", lambda hub, slug: hub.connectors.update(slug, deferred=True, connect=False)),
    "show": ("always in view", lambda hub, slug: hub.connectors.update(slug, deferred=False, connect=False)),
}
_OPPOSITE = {"enable": "disable", "disable": "enable"}


def _deed(text: str) -> tuple[str, Callable[[BoundHub, str], Awaitable[Any]]]:
    name, _, value = text.partition(":")
    policies: tuple[Policy, ...] = get_args(Policy)
    if name == "approval" and value in policies:
        policy = policies[policies.index(value)]
        told = {
            "never": "asking for nothing",
            "always": "asking for every call",
            "default": "asking as usual",
        }
        return told[value], lambda hub, slug: hub.connectors.update(slug, approval=policy, connect=False)
    if text not in _DEEDS:
        raise InvalidArguments(
            f"{text[:40]!r} is nothing to do with connectors", hint="use the page's own buttons"
        )
    return _DEEDS[text]


async def bulk(request: Request) -> Response:
    """One after the other by the hub's own methods: what somebody may not do to one, they may not to many."""
    hub, form = hub_of(request), await filled(request)
    slugs, what = form.many("slug"), form.text("do")
    word, deed = _deed(what)
    changed: list[str] = []

    async def one(slug: str) -> None:
        was_on = (await hub.connectors.get(slug)).connector.enabled
        await deed(hub, slug)
        if (what, was_on) in (("enable", False), ("disable", True)):
            changed.append(slug)

    failed = await do_to_many(hub, slugs, "connector", one)
    undo = (
        {"address": "/connectors/-/bulk", "sent": {"do": _OPPOSITE[what], "slug": " ".join(sorted(changed))}}
        if changed
        else None
    )
    return pages_of(request).part(
        request,
        "connectors/bulk.html",
        told=_told([slug for slug in slugs if slug not in failed], word, failed),
        told_kind="warn" if failed else "good",
        undo=undo,
    )


def _told(done: Sequence[str], word: str, failed: Mapping[str, str]) -> str:
    parts: list[str] = []
    if done:
        parts.append(f"{_named(done)} {word}.")
    if failed:
        causes = [f"{slug}: {cause}" for slug, cause in [*failed.items()][:_MOST_TOLD]]
        more = f"; and {len(failed) - _MOST_TOLD} more" if len(failed) > _MOST_TOLD else ""
        parts.append(f"{len(failed)} not: {'; '.join(causes)}{more}.")
    return " ".join(parts)


def _named(slugs: Sequence[str]) -> str:
    return f"{len(slugs)} connectors" if len(slugs) > 1 else slugs[0]


routes = [
    Route("/connectors", list_connectors),
    Route("/connectors/-/bulk", bulk, methods=["POST"]),
]
