"""Notifications to one client: `list_changed` of its lists, and `updated` of the resources it subscribed to.

A client is notified only of lists and resources that it can see.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from mcp_types import INVALID_PARAMS

from dragoman.errors import NotFound
from dragoman.events import Event, EventKind
from dragoman.mcp_endpoint.messages import RpcError
from dragoman.mcp_endpoint.methods import McpMethods
from dragoman.mcp_endpoint.request_context import RequestContext

LISTS = ("tools", "prompts", "resources")
TOLD_BY: frozenset[EventKind] = frozenset(
    {
        "tools.changed",
        "tools.loaded",
        "tools.unloaded",
        "connector.registered",
        "connector.updated",
        "connector.removed",
        "bundle.changed",
        "thread.changed",
        "preferences.changed",
        "credential.changed",
        "events.lost",
    }
)
_GATHER = 0.05
"""Seconds in which news are gathered: a server that is added brings several."""
UPDATED = "notifications/resources/updated"
Tell = Callable[[str, dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ChangeSubscription:
    """What a client of the 2026 era asks to be told of."""

    lists: tuple[str, ...]
    uris: tuple[str, ...]
    tasks: tuple[str, ...] = ()

    @classmethod
    def read(cls, notifications: Any) -> "ChangeSubscription":
        """Raises `RpcError` for what is no filter."""
        if not isinstance(notifications, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params: notifications must be an object")
        asked = cast("dict[str, Any]", notifications)
        lists = tuple(name for name in LISTS if asked.get(f"{name}ListChanged") is True)
        uris = _strings(asked, "resourceSubscriptions", "addresses")
        return cls(lists, uris, _strings(asked, "taskIds", "ids"))

    def honoured(self, watched: Collection[str], tasks: Collection[str]) -> dict[str, Any]:
        """What it will be told of."""
        facts: dict[str, Any] = {f"{name}ListChanged": True for name in self.lists}
        facts |= {"resourceSubscriptions": [*watched]} if watched else {}
        return {**facts, "taskIds": [*tasks]} if tasks else facts


class ChangeNotifier:
    """`lists` are those that the client wants to hear of; `watched` resources by the names it knows."""

    def __init__(
        self, answers: McpMethods, context: RequestContext, lists: Collection[str], watched: Collection[str]
    ) -> None:
        self._answers = answers
        self._asker = context
        self._lists = lists
        self._watched = watched

    async def follow(self, tell: Tell, known: dict[str, str], listening: asyncio.Event) -> None:
        """Until the hub closes. `known` are the lists that the client knows; it is kept up to date.

        `listening` is set when nothing is missed any more.
        """
        async with asyncio.TaskGroup() as tasks:
            servers = tasks.create_task(self._follow_servers(tell))
            await self._follow_catalog(tell, known, listening)
            servers.cancel()

    async def digests(self) -> dict[str, str]:
        """What tells the lists of this client, as they are now, from others; the same in every process."""
        found: dict[str, str] = {}
        for name in self._lists:
            if name == "tools":
                found[name] = await self._tools()
            else:
                found[name] = await self._answers.offerings.digest(name, self._asker)
        return found

    async def _tools(self) -> str:
        try:
            return (await self._answers.shown(self._asker)).digest.hex()
        except NotFound:
            return ""  # its connector was removed: an empty list, until it comes back

    async def _follow_catalog(self, tell: Tell, known: dict[str, str], listening: asyncio.Event) -> None:
        everything = cast("AsyncGenerator[Event]", self._asker.hub.events())
        async with aclosing(everything) as events:
            upcoming = asyncio.ensure_future(anext(events))
            try:
                await asyncio.sleep(0)  # from here on everything is heard
                listening.set()
                while True:
                    await self._compare(tell, known)
                    while (await upcoming).kind not in TOLD_BY:
                        upcoming = asyncio.ensure_future(anext(events))
                    upcoming = asyncio.ensure_future(anext(events))
                    await asyncio.sleep(_GATHER)
            except StopAsyncIteration:
                return
            finally:
                upcoming.cancel()
                await asyncio.wait([upcoming])

    async def _compare(self, tell: Tell, known: dict[str, str]) -> None:
        for name, digest in (await self.digests()).items():
            if known.setdefault(name, digest) != digest:
                known[name] = digest
                await tell(f"notifications/{name}/list_changed", {})

    async def _follow_servers(self, tell: Tell) -> None:
        own = self._asker.target.slug
        async with aclosing(self._asker.hub.server_requests.notices()) as notices:
            async for slug, notice in notices:
                if own not in (None, slug):
                    continue
                if notice.kind in self._lists:
                    await tell(f"notifications/{notice.kind}/list_changed", {})
                elif notice.kind == "resource":
                    uri = notice.uri if own else f"{slug}+{notice.uri}"
                    if _is_watched(uri, self._watched):
                        await tell(UPDATED, {"uri": uri})


def _is_watched(uri: str, watched: Collection[str]) -> bool:
    """Sub-resources too: a server may notify of a file where its folder was subscribed to."""
    return uri in watched or any(uri.startswith(f"{one.rstrip('/')}/") for one in watched)


def _strings(asked: dict[str, Any], field: str, what: str) -> tuple[str, ...]:
    """Each once."""
    found: Any = asked.get(field) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in cast("list[Any]", found)):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {field} must be a list of {what}")
    return tuple(dict.fromkeys(cast("list[str]", found)))
