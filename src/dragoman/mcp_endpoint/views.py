"""What a client is shown: all tools, three that lead to those deferred, one connector by itself, or a bundle.

Lists are kept as the bytes that go out, by what the caller may see, until the catalog changes.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import orjson

from dragoman.catalog import ToolInfo
from dragoman.hub import BoundHub
from dragoman.mcp_endpoint.listing import listed
from dragoman.mcp_endpoint.search_tools import search_tools
from dragoman.tool import Tool

View = Literal["tools", "search"]
_MOST_KEPT = 256
_EXECUTION = {"execution": {"taskSupport": "optional"}}
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EndpointTarget:
    """What the address asks for. `view` is None where it depends on what is deferred, or on the bundle.

    Whoever asks for a bundle has no other tools than its own: the endpoint sees to that.
    """

    slug: str | None = None
    view: View | None = None
    bundle: str | None = None

    def __str__(self) -> str:
        place = self.slug or "" if self.bundle is None else f"bundles/{self.bundle}"
        return f"/mcp/{place}?view={self.view or ''}"


@dataclass(frozen=True, slots=True)
class ClientTools:
    """The tools of one client. `by_name` holds them by the name it knows; those deferred are not in it."""

    view: View
    body: bytes
    digest: bytes
    by_name: Mapping[str, Tool]


_Key = tuple[EndpointTarget, bool, str, str, tuple[frozenset[str], ...], tuple[str, ...]]


class ClientViews:
    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, ClientTools] = OrderedDict()
        self._bytes = 0
        self._version = -1

    def show(self, target: EndpointTarget, hub: BoundHub, *, has_execution: bool) -> ClientTools:
        """`has_execution`: tools say that they may be called as tasks, as the 2025 era wants it.

        Raises `NotFound` for a connector or bundle that the caller does not see.
        """
        caller, version = hub.caller, hub.catalog_version
        if version != self._version:
            self._kept.clear()
            self._version, self._bytes = version, 0
        loaded = hub.tools.loaded()
        key = (target, has_execution, caller.workspace, caller.user, caller.grants, loaded)
        shown = self._kept.get(key)
        if shown is None:
            shown = self._keep(key, _made(target, hub, has_execution=has_execution))
        else:
            self._kept.move_to_end(key)
        return shown

    def _keep(self, key: _Key, shown: ClientTools) -> ClientTools:
        self._kept[key] = shown
        self._bytes += len(shown.body)
        while len(self._kept) > _MOST_KEPT or (self._bytes > _MOST_BYTES and len(self._kept) > 1):
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone.body)
        return shown


def _made(target: EndpointTarget, hub: BoundHub, *, has_execution: bool) -> ClientTools:
    more = _EXECUTION if has_execution else {}
    view = target.view
    if target.bundle is not None:
        view = view or hub.bundles.find(target.bundle).view
    infos = _offered(target.slug, hub)
    tools = [info.shown_tool for info in infos]
    if view == "tools" or target.slug is not None:
        return _shown("tools", tools, is_alone=target.slug is not None, more=more)
    if view == "search":
        loaded = {*hub.tools.loaded()}
        visible = [tool for tool in tools if tool.name in loaded]
    else:
        deferred = hub.tools.deferred(infos)
        visible = [tool for tool in tools if tool.name not in deferred]
        if not deferred:
            return _shown("tools", tools, more=more)
    return _shown("search", visible, search_tools(hub, tools), more=more)


def _offered(slug: str | None, hub: BoundHub) -> list[ToolInfo]:
    """What a call would refuse is not shown: disabled, changed since it was accepted, not for MCP.

    What cannot be reached now is, and says so.
    """
    tools, way = hub.tools, hub.caller.way
    infos = (tools.info(tool.name) for tool in tools.list(slug) if tool.is_open_to(way))
    return [info for info in infos if info.is_callable]


def _shown(
    view: View,
    tools: Sequence[Tool],
    leading: Sequence[Mapping[str, Any]] = (),
    *,
    is_alone: bool = False,
    more: Mapping[str, Any],
) -> ClientTools:
    """`leading` are the tools that lead to all others; `more` is said of each."""
    pieces = [
        orjson.dumps({**entry, **more})
        for entry in (*leading, *(listed(tool, is_alone=is_alone) for tool in tools))
    ]
    body = b"[%b]" % b",".join(pieces)
    names = (tool.original_name if is_alone else tool.name for tool in tools)
    digest = blake2b(body, digest_size=16).digest()
    return ClientTools(view, body, digest, dict(zip(names, tools, strict=True)))
