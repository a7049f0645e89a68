"""The tools of one connector as they are known now: one list for all, or one per identity."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal

from dragoman.connector import Connector
from dragoman.errors import NotFound
from dragoman.scope import APP, Caller, identity_of
from dragoman.tool import Tool

CatalogState = Literal["empty", "populating", "ready", "stale"]
COMMON = ""
SETTINGS = ("allowed_callers", "required_capabilities", "approval", "cost", "cache_ttl")
"""What people decide about a tool. It holds for every list of the connector, whatever the server says."""
_UNDECIDED = {item.name: item.default for item in fields(Tool) if item.name in (*SETTINGS, "enabled")}
ListKey = tuple[str, str]
"""Whose list: the connector's id, and the identity."""


def is_of_tier(connector: Connector, caller: Caller) -> bool:
    """The app's, the workspace's or the caller's own."""
    return connector.workspace in (caller.workspace, APP) and connector.owner in ("", caller.user)


def is_visible(connector: Connector, caller: Caller) -> bool:
    """Of the caller's tiers, and within the caller's grants. What is not, does not exist."""
    return (
        is_of_tier(connector, caller)
        # A native tool is admitted by its own name, which tells nothing of a connector.
        and (not caller.grants or connector.kind == "native" or caller.may_see(connector.slug))
    )


def nearest(connectors: Iterable[Connector], caller: Caller) -> list[Connector]:
    """Those that the caller sees, by slug. Of one name the nearest: their own, the workspace's, the app's."""
    seen = [connector for connector in connectors if is_visible(connector, caller)]
    seen.sort(key=lambda connector: (connector.slug, connector.owner == "", connector.workspace == APP))
    return [one for place, one in enumerate(seen) if place == 0 or seen[place - 1].slug != one.slug]


def unknown_tool(name: str, hint: str | None = None) -> NotFound:
    return NotFound(
        f"there is no tool {name[:100]!r}", hint=hint or "dragoman tools list shows those there are"
    )


class ConnectorTools:
    """Lists are replaced whole, never changed: a reader always sees one refresh, not half of two."""

    def __init__(self, connector: Connector, *, is_new: bool, is_stored: bool = True) -> None:
        self.connector = connector
        self.is_new = is_new
        self.is_stored = is_stored
        self.state: CatalogState = "empty"
        self.has_own_lists = connector.lists_per_user
        self._lists: dict[str, Mapping[str, Tool]] = {}
        self._ordered: dict[str, tuple[Tool, ...]] = {}
        self._settings: dict[str, dict[str, Any]] = {}

    def adopt(self, connector: Connector) -> None:
        self.connector = connector
        self.has_own_lists = connector.lists_per_user or any(key != COMMON for key in self._lists)

    def tools(self, identity: str = COMMON) -> Mapping[str, Tool]:
        """By original name."""
        return self._lists.get(identity, {})

    def all_tools(self) -> list[Tool]:
        return [tool for tools in self._lists.values() for tool in tools.values()]

    def replace(self, identity: str, tools: Mapping[str, Tool]) -> None:
        if tools or identity == COMMON:
            self._lists[identity] = tools
            self._ordered[identity] = tuple(sorted(tools.values(), key=lambda tool: tool.name))
        else:
            self._lists.pop(identity, None)
            self._ordered.pop(identity, None)
        self.has_own_lists = self.connector.lists_per_user or any(key != COMMON for key in self._lists)

    def remember(self, tool: Tool) -> None:
        """What people decided about it, for lists to come: by going and returning it gets out of nothing."""
        kept = {name: getattr(tool, name) for name in SETTINGS}
        if tool.identity == COMMON:
            kept["enabled"] = tool.enabled
        if all(value == _UNDECIDED[name] for name, value in kept.items()):
            self._settings.pop(tool.original_name, None)
        else:
            self._settings[tool.original_name] = kept

    def settings_of(self, original_name: str) -> Mapping[str, Any]:
        return self._settings.get(original_name, {})

    def find(self, original_name: str, caller: Caller) -> Tool | None:
        return self.tools(self._identity(caller)).get(original_name)

    def list(self, caller: Caller) -> tuple[Tool, ...]:
        return self._ordered.get(self._identity(caller), ())

    def was_listed(self, caller: Caller) -> bool:
        """Whether what the caller would read has ever been read from the server."""
        if self.connector.lists_per_user:
            return self._identity(caller) in self._lists
        return self.state != "empty"

    def lists(self) -> Mapping[str, tuple[Tool, ...]]:
        """Every list in its order, by identity."""
        return self._ordered

    def key(self, caller: Caller) -> ListKey:
        """Which of the lists the caller reads."""
        return (self.connector.id, self._identity(caller))

    def _identity(self, caller: Caller) -> str:
        """Whose list the caller reads: that of the own connection, else the user's, else the common one.

        Where lists are per user there is no common one: a user who has none sees nothing.
        """
        if not self.has_own_lists:
            return COMMON
        own = identity_of(caller, self.connector.configuration.isolation)
        if own in self._lists:
            return own
        user = identity_of(caller, "user")
        return user if user in self._lists or self.connector.lists_per_user else COMMON
