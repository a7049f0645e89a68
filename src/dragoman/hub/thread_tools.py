"""The tools of a thread, and why the others are missing. Says nothing of what the caller may not see."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.catalog import Catalog, ToolInfo
from dragoman.connections.missing_credentials import credential_hint
from dragoman.connector import Connector
from dragoman.hints import Hinted
from dragoman.hub.connectors import ConnectorView
from dragoman.scope import ANY_TOOL, Caller

Why = Literal["inactive", "disabled", "needs_auth", "unavailable", "changed", "way", "unknown", "too_many"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTools(Hinted):
    """Tools that cannot be called here, for one reason. A count of 0 means that nobody knows how many."""

    why: Why
    reason: str
    connector: str | None = None
    count: int = 0
    command_hint: str | None = None

    @property
    def text(self) -> str:
        """`3 tools hidden: connect your github account`."""
        kind = "unavailable" if self.why in ("unavailable", "changed") else "hidden"
        number = f"{self.count:,} " if self.count else ""
        return f"{number}{'tool' if self.count == 1 else 'tools'} {kind}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ThreadTools:
    """By connector and name."""

    tools: tuple[ToolInfo, ...]
    missing: tuple[MissingTools, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadToolsQuery:
    """Who asks, in a thread with these active connectors (None: all), and how far one request narrows it.

    `held` are the names of the secrets that the user has, by connector id.
    """

    caller: Caller
    active: frozenset[str] | None
    held: Mapping[str, frozenset[str]]
    names: tuple[str, ...] | None = None
    most: int | None = None


def tools_of(wanted: ThreadToolsQuery, views: Sequence[ConnectorView], catalog: Catalog) -> ThreadTools:
    caller, chosen = wanted.caller, _Chosen(wanted.names, wanted.caller, catalog)
    tools: list[ToolInfo] = []
    missing: list[MissingTools] = [*chosen.unknown(views)]
    for view in views:
        listed = catalog.list(caller, view.connector.id)
        infos = [catalog.info(tool.name, caller) for tool in listed if chosen.has(tool.slug, tool.name)]
        if not infos and (listed or not chosen.names_all_of(view.connector.slug)):
            continue
        if reason := _whole(view, wanted, len(infos)):
            missing.append(reason)
            continue
        tools += [info for info in infos if _ready(info, caller)]
        missing += _parts([info for info in infos if not _ready(info, caller)], view.connector)
    here = caller if wanted.active is None else caller.within(wanted.active)
    shown = [tool for tool in catalog.list(here) if tool.bundled is not None and chosen.has("", tool.name)]
    infos = [catalog.info(tool.name, here) for tool in shown]
    tools = [*(info for info in infos if _ready(info, caller)), *tools]
    if wanted.most is not None and len(tools) > wanted.most:
        reason = f"at most {wanted.most} were asked for"
        missing.append(MissingTools(why="too_many", reason=reason, count=len(tools) - wanted.most))
    return ThreadTools(tuple(tools[: wanted.most]), tuple(missing))


class _Chosen:
    """The tools and connectors that one request names; all of them when it names none."""

    def __init__(self, names: tuple[str, ...] | None, caller: Caller, catalog: Catalog) -> None:
        self._names = names
        found = {name: catalog.find(name, caller) for name in names or ()}
        self._tools = {tool.name for tool in found.values() if tool is not None}
        self._others = {name for name, tool in found.items() if tool is None}

    def has(self, slug: str, tool: str) -> bool:
        return self._names is None or tool in self._tools or self.names_all_of(slug)

    def names_all_of(self, slug: str) -> bool:
        return self._names is None or bool(self._others & {slug, f"mcp_{slug}", ANY_TOOL})

    def unknown(self, views: Iterable[ConnectorView]) -> Iterable[MissingTools]:
        slugs = {view.connector.slug for view in views}
        known = slugs | {f"mcp_{slug}" for slug in slugs} | {ANY_TOOL}
        for name in sorted(self._others - known):
            yield MissingTools(why="unknown", reason=f"there is no tool {name[:100]!r}", count=1)


def _whole(view: ConnectorView, wanted: ThreadToolsQuery, count: int) -> MissingTools | None:
    """Why none of a connector's tools can be called; None when that depends on the tool."""
    connector, status = view.connector, view.status
    slug = connector.slug
    if connector.kind == "native" and not count:
        return None
    if wanted.active is not None and slug not in wanted.active:
        reason = f"{slug} is not active in this thread"
        hint = f"dragoman threads add {wanted.caller.thread} {slug}"
        return MissingTools(why="inactive", connector=slug, count=count, reason=reason, command_hint=hint)
    if not connector.enabled:
        hint = f"dragoman connectors enable {slug}"
        return MissingTools(
            why="disabled", connector=slug, count=count, reason=f"{slug} is disabled", command_hint=hint
        )
    lacking = _lacking(connector, wanted.held)
    if lacking or status.state == "needs_auth":
        hint = credential_hint(connector, lacking) if lacking else status.command_hint
        reason = f"connect your {slug} account"
        return MissingTools(why="needs_auth", connector=slug, count=count, reason=reason, command_hint=hint)
    if status.state in ("error", "reconnecting"):
        reason = f"{slug} cannot be reached" + (f": {status.cause}" if status.cause else "")
        return MissingTools(
            why="unavailable", connector=slug, count=count, reason=reason, command_hint=status.command_hint
        )
    return None


def _lacking(connector: Connector, held: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """What the user must still bring; one that all share will do where there is one."""
    configuration = connector.configuration
    brought = {*configuration.secrets, *held.get(connector.id, ())}
    return tuple(name for name in configuration.personal_secrets if name not in brought)


def _ready(info: ToolInfo, caller: Caller) -> bool:
    return info.state == "ready" and info.tool.is_open_to(caller.way)


def _parts(infos: Sequence[ToolInfo], connector: Connector) -> Iterable[MissingTools]:
    """Why some tools of a connector that works cannot be called."""
    slug = connector.slug
    counts = Counter(info.state for info in infos)
    reasons: dict[str, tuple[Why, str, str]] = {
        "disabled": ("disabled", f"disabled in {slug}", "dragoman tools enable NAME"),
        "changed": (
            "changed",
            f"{slug} changed them, and nobody has accepted that yet",
            "look at what changed with dragoman tools show NAME, then dragoman tools accept NAME",
        ),
        "unavailable": (
            "unavailable",
            f"{slug} does not offer them now",
            "dragoman connectors show NAME tells more",
        ),
        "ready": ("way", f"tools of {slug} that may not be called this way", "call them yourself"),
    }
    for state, count in sorted(counts.items()):
        why, reason, hint = reasons[state]
        yield MissingTools(why=why, connector=slug, count=count, reason=reason, command_hint=hint)
