"""What a client is shown: all tools, three that lead to all others, or one connector by itself.

Lists are kept as the bytes that go out, by what the caller may see, until the catalog changes.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import orjson

from dragoman.hub import Hub
from dragoman.mcp_endpoint.listing import listed
from dragoman.mcp_endpoint.search_tools import search_tools
from dragoman.scope import Caller
from dragoman.tool import Tool

View = Literal["tools", "search"]
BUDGET = 10_000
"""Tokens that the tools may take in a client's first request before it gets the search view instead."""
_MOST_KEPT = 256
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """What the address asks for. `view` is None where the number of tools decides."""

    slug: str | None = None
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """The tools of one client. `by_name` holds them by the name it knows; empty in the search view."""

    view: View
    body: bytes
    digest: bytes
    by_name: Mapping[str, Tool]


_Key = tuple[Target, str, str, tuple[frozenset[str], ...]]


def tokens_of(body: bytes) -> int:
    """About what a model reads for it: four bytes each."""
    return (len(body) + 3) // 4


class Views:
    def __init__(self, hub: Hub, budget: int = BUDGET) -> None:
        self._hub = hub
        self._budget = budget
        self._kept: OrderedDict[_Key, Shown] = OrderedDict()
        self._bytes = 0
        self._version = -1

    def show(self, target: Target, caller: Caller) -> Shown:
        """Raises `NotFound` for a connector that the caller does not see."""
        version = self._hub.catalog_version
        if version != self._version:
            self._kept.clear()
            self._version, self._bytes = version, 0
        key = (target, caller.workspace, caller.user, caller.grants)
        shown = self._kept.get(key)
        if shown is None:
            shown = self._keep(key, self._made(target, caller))
        else:
            self._kept.move_to_end(key)
        return shown

    def _made(self, target: Target, caller: Caller) -> Shown:
        tools = self._offered(target.slug, caller)
        if target.view == "search":
            return self._search(tools)
        pieces = [orjson.dumps(listed(tool, is_alone=target.slug is not None)) for tool in tools]
        body = b"[%b]" % b",".join(pieces)
        if target.view is None and target.slug is None and tokens_of(body) > self._budget:
            return self._search(tools)
        names = (tool.original_name if target.slug else tool.name for tool in tools)
        return Shown("tools", body, _digest(body), dict(zip(names, tools, strict=True)))

    def _search(self, tools: Sequence[Tool]) -> Shown:
        body = orjson.dumps(search_tools(self._hub, tools))
        return Shown("search", body, _digest(body), {})

    def _offered(self, slug: str | None, caller: Caller) -> list[Tool]:
        """What a call would refuse is not shown: disabled, changed since it was accepted, not for MCP."""
        info = self._hub.tools.info
        return [
            tool
            for tool in self._hub.tools.list(slug, caller)
            if tool.is_open_to(caller.way) and info(tool.name, caller).state == "ready"
        ]

    def _keep(self, key: _Key, shown: Shown) -> Shown:
        self._kept[key] = shown
        self._bytes += len(shown.body)
        while len(self._kept) > _MOST_KEPT or (self._bytes > _MOST_BYTES and len(self._kept) > 1):
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone.body)
        return shown


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()
