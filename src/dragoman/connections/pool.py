"""All connections to MCP servers. The number of open ones is capped: the least recently used idle one
goes first.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.cluster.places import NotHeld
from dragoman.connections.boxes.boxes import Boxes
from dragoman.connections.http_clients import HttpClients
from dragoman.connections.link_pool import Key, LinkPool, key_of
from dragoman.connections.source import (
    ConnectionObserver,
    Listing,
    Secrets,
    ServerNotice,
    ServerRequest,
    SourceChannel,
)
from dragoman.connections.subscriptions import ResourceSubscriptions
from dragoman.connector import Connector
from dragoman.errors import LimitReached
from dragoman.loading import beside
from dragoman.scope import Caller

if TYPE_CHECKING:
    from dragoman.connections.connection import Connection
    from dragoman.connections.session import McpSession
    from dragoman.connections.wire import Wire

_LINKS = "dragoman.connections.connection"
_SLOW_START = 5.0
_SOON_ASKED = 5.0
_TIME_TO_CUT = 2.0

NoticeListener = Callable[[Connector, str, ServerNotice], None]
"""Told which connector, for which identity it is connected, and what its server said."""


class Connections(LinkPool["Connection"]):
    """The source of what MCP servers offer."""

    def __init__(
        self,
        secrets: Secrets,
        observer: ConnectionObserver,
        clients: HttpClients,
        boxes: Boxes,
        *,
        max_servers: int = 64,
        max_spawns: int = 4,
        request_timeout: float = 60.0,
        has_people: bool = False,
    ) -> None:
        """`has_people`: there is always somebody whom servers may ask, whoever calls."""
        super().__init__(observer)
        # The SDK is half of what a hub would import, and who has no MCP server needs none of it.
        self.is_ready = _LINKS in sys.modules
        self._secrets = secrets
        self._clients = clients
        self._boxes = boxes
        self._max_servers = max_servers
        self._request_timeout = request_timeout
        self.has_people = has_people
        self._spawns = asyncio.Semaphore(max_spawns)
        self._watching: dict[Key, ResourceSubscriptions] = {}
        self._listeners: set[NoticeListener] = set()
        # Where several nodes hold connections: whether this one holds, who is told that it needs not, and
        # one of the connections that a connector may have over all nodes.
        self.holds: Callable[[Connector, Key], bool] = lambda connector, key: True
        self.on_forgotten: Callable[[Key], None] = lambda key: None
        self.room: Callable[[Connector], AbstractAsyncContextManager[None]] = lambda connector: nullcontext()
        self.on_server: Callable[[int], None] = lambda pid: None  # a process was started for a connection

    async def ask(self, question: ServerRequest) -> Mapping[str, Any]:
        """What else a server of MCP can be asked. Its own no is on the line as well."""
        self.check_wanted(question.connector, question.caller)
        return await self.with_link(
            question.connector, question.caller, lambda link: link.ask(question), question.channel
        )

    # What servers tell by themselves

    @contextmanager
    def listening(self, listener: "NoticeListener") -> Generator[None]:
        """While this lasts, `listener` is called with what servers tell of prompts and resources."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)

    async def watch(self, connector: Connector, caller: Caller, uri: str) -> Callable[[], None]:
        """Asks the server to tell when this resource changes; what is returned ends it, and is called once.

        It waits until the server has been asked, though not for long: one that is away is asked when it is
        back. While anything is watched the connection is not closed for being idle.
        """
        self.check_wanted(connector, caller)
        key = key_of(connector, caller)
        watching = self._watching.setdefault(key, ResourceSubscriptions())
        watching.add(uri)

        def end() -> None:
            watching.remove(uri)
            if not watching.uris and key not in self._links and self._watching.get(key) is watching:
                del self._watching[key]

        try:
            await self.with_link(connector, caller, lambda link: link.ready())
            with suppress(TimeoutError):
                async with asyncio.timeout(_SOON_ASKED):
                    await watching.settled()
        except BaseException:
            end()
            raise
        return end

    def _take_notice(self, link: "Connection", notice: ServerNotice) -> None:
        self.tell_notice(link.connector, link.identity, notice)

    def tell_notice(self, connector: Connector, identity: str, notice: ServerNotice) -> None:
        for listener in [*self._listeners]:
            listener(connector, identity, notice)

    # Links

    def can_ask(self, connector: Connector, channel: SourceChannel | None) -> bool:
        if channel is not None and "elicitation" in channel.capabilities:
            return True
        return self.has_people and "elicitation" in connector.configuration.client_capabilities

    async def make_ready(self) -> None:
        await beside(lambda: import_module(_LINKS))
        self.is_ready = True

    def make_link(self, key: Key, connector: Connector, can_ask: bool) -> "Connection":
        from dragoman.connections.connection import Connection

        watching = self._watching.setdefault(key, ResourceSubscriptions())
        link = Connection(
            connector,
            key[1],
            self._opener(key),
            self._observer,
            watching,
            can_ask=can_ask,
            is_held=lambda: self.holds(link.connector, key),  # whether it has a state, its server says
        )
        link.on_notice = self._take_notice
        return link

    def listed(self, link: "Connection", *, must_be_new: bool) -> Awaitable[Listing]:
        """Always as the server lists them now."""
        connector = link.connector
        wait = connector.connect_limit + (connector.configuration.request_timeout or self._request_timeout)
        return link.list_tools(asyncio.get_running_loop().time() + wait)

    def forgotten(self, key: Key) -> None:
        if not self._watching[key].uris:
            del self._watching[key]
        self.on_forgotten(key)

    def check_held(self, key: Key, connector: Connector) -> None:
        if not self.holds(connector, key):
            raise NotHeld

    def is_wanted(self, key: Key) -> bool:
        """Whether there is a reason to keep its place: a link, a watched resource, or that it was closed on
        purpose.
        """
        watching = self._watching.get(key)
        return key in self._links or key in self._disconnected or bool(watching and watching.uris)

    async def cut(self, are_meant: Callable[[Connector], bool]) -> None:
        """Ends links at once, with what is under way; on return nothing of them is left, or soon."""
        links = [link for link in self._owners if are_meant(link.connector)]
        owners = [self._owners[link] for link in links]
        for link in links:
            link.cut()
        for owner in owners:
            owner.cancel()
        if owners:
            await asyncio.wait(owners, timeout=_TIME_TO_CUT)

    def idle_links(self) -> dict[Key, float]:
        """Links that nobody uses, with the seconds since somebody did."""
        now = asyncio.get_running_loop().time()
        return {
            key: now - link.usage.last_used for key, link in self._links.items() if link.usage.leases == 0
        }

    async def close_oldest_idle(self, connector_id: str) -> bool:
        """Closes the link of a connector that was unused for longest; False when all are in use."""
        idle = [
            link
            for key, link in self._links.items()
            if key[0] == connector_id and link.is_open and not link.usage.leases
        ]
        if idle:
            await self.close_link(min(idle, key=lambda link: link.usage.last_used))
        return bool(idle)

    async def close_idle(self, key: Key) -> bool:
        """Closes the link of this key; False when it is in use."""
        link = self._links.get(key)
        if link is not None and link.usage.leases:
            return False
        if link is not None:
            await self.close_link(link)
        return True

    def _make_room(self, key: Key, connector: Connector) -> None:
        """Closes the least recently used idle link where a cap is reached; refuses when all are busy."""
        others = [(other, link) for other, link in self._links.items() if other != key and link.is_open]
        own = [link for other, link in others if other[0] == connector.id]
        self._make_room_among(own, connector.configuration.max_servers, f"{connector.slug} has")
        self._make_room_among([link for _, link in others], self._max_servers, "there are")

    def _make_room_among(self, open_ones: "list[Connection]", cap: int | None, subject: str) -> None:
        if cap is None or len(open_ones) < cap:
            return
        idle = [link for link in open_ones if link.usage.leases == 0]
        if not idle:
            raise LimitReached(
                f"{subject} {len(open_ones)} open connections, all busy, and may have no more than {cap}",
                hint="wait for one to become idle, or raise max_servers",
            )
        oldest = min(idle, key=lambda link: link.usage.last_used)
        oldest.close()

    def _opener(self, key: Key):
        @asynccontextmanager
        async def opened(
            connector: Connector,
            on_notice: Callable[[ServerNotice], None],
            on_wire: "Callable[[Wire], None]",
            *,
            can_ask: bool,
        ) -> "AsyncGenerator[McpSession]":
            from dragoman.connections.session import open_session

            self._make_room(key, connector)

            def seen(wire: "Wire") -> None:
                if wire.pid is not None:
                    self.on_server(wire.pid)
                on_wire(wire)

            reach = self._clients.for_connector(connector)
            box_for = partial(self._boxes.box_for, connector, key[1], is_trusted=reach.is_trusted)
            reach = replace(reach, boxed=box_for)
            secrets = await self._secrets.reveal(connector, key[1])
            bearer = self._secrets.bearer(connector, key[1])
            async with (
                self.room(connector),
                self._turn_to_start(connector) as started,
                asyncio.timeout(connector.connect_limit) as limit,
                open_session(connector, secrets, reach, on_notice, seen, bearer, can_ask=can_ask) as session,
            ):
                limit.reschedule(None)
                started()
                yield session

        return opened

    @asynccontextmanager
    async def _turn_to_start(self, connector: Connector) -> AsyncGenerator[Callable[[], None]]:
        """A place among the few processes that may start at once; a slow starter loses it to the others."""
        if connector.configuration.wire != "stdio":
            yield lambda: None
            return
        await self._spawns.acquire()
        is_held = True

        def give_back() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                timer.cancel()
                self._spawns.release()

        timer = asyncio.get_running_loop().call_later(_SLOW_START, give_back)
        try:
            yield give_back
        finally:
            give_back()
