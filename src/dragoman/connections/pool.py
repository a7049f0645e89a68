"""All connections to MCP servers, by (connector, identity). Owns their tasks.

A connection appears with the first wish for it and goes when it is idle, evicted, retired or closed.
The number of open ones is capped: the least recently used idle one goes first.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Self, TypeVar

from dragoman.connections.connection import Connection
from dragoman.connections.http_clients import HttpClients
from dragoman.connections.session import McpSession, open_session
from dragoman.connections.source import (
    ConnectionObserver,
    ConnectionStatus,
    Listing,
    Secrets,
    ServerNotice,
    ServerRequest,
    SourceCall,
)
from dragoman.connections.subscriptions import ResourceSubscriptions
from dragoman.connections.wire import Wire
from dragoman.connector import Connector
from dragoman.errors import DragomanError, LimitReached, ShuttingDown, Unreachable
from dragoman.scope import Caller, holder_of, identity_of
from dragoman.tool import RawResult

_SLOW_START = 5.0
_LAST_CALLS = 4.0
_SOON_ASKED = 5.0
_TIME_TO_CLOSE = 1.5

Key = tuple[str, str]
Result = TypeVar("Result")
NoticeListener = Callable[[Connector, str, ServerNotice], None]
"""Told which connector, for which identity it is connected, and what its server said."""


class Connections:
    """The MCP half of `Sources`."""

    def __init__(
        self,
        secrets: Secrets,
        observer: ConnectionObserver,
        clients: HttpClients,
        *,
        max_servers: int = 64,
        max_spawns: int = 4,
        request_timeout: float = 60.0,
        has_people: bool = False,
    ) -> None:
        """`has_people`: there is always somebody whom servers may ask, whoever calls."""
        self._secrets = secrets
        self._observer = observer
        self._clients = clients
        self._max_servers = max_servers
        self._request_timeout = request_timeout
        self.has_people = has_people
        self._spawns = asyncio.Semaphore(max_spawns)
        self._links: dict[Key, Connection] = {}
        self._owners: dict[Connection, asyncio.Task[None]] = {}
        self._watching: dict[Key, ResourceSubscriptions] = {}
        self._listeners: set[NoticeListener] = set()
        self._retired: dict[str, int] = {}
        self._is_closing = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Calls under way get a few seconds; then every owner is told to leave, whatever its server does."""
        self._is_closing = True
        links = [*self._owners]
        for link in links:
            link.close()
        if busy := [self._owners[link] for link in links if link.usage.leases]:
            await asyncio.wait(busy, timeout=_LAST_CALLS)
        for task in self._owners.values():
            task.cancel()
        await self._stack.aclose()

    # Sources

    async def call(self, call: SourceCall) -> RawResult:
        return await self._with_link(
            call.connector,
            call.caller,
            lambda link: link.call(call),
            can_ask="elicitation" in call.channel.capabilities,
        )

    async def ask(self, question: ServerRequest) -> Mapping[str, Any]:
        """What else a server of MCP can be asked. Its own no is on the line as well."""
        return await self._with_link(
            question.connector,
            question.caller,
            lambda link: link.ask(question),
            can_ask="elicitation" in question.channel.capabilities,
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
        key = (connector.id, identity_of(caller, connector.configuration.isolation))
        watching = self._watching.setdefault(key, ResourceSubscriptions())
        watching.add(uri)

        def end() -> None:
            watching.remove(uri)
            if not watching.uris and key not in self._links and self._watching.get(key) is watching:
                del self._watching[key]

        try:
            await self._with_link(connector, caller, lambda link: link.ready())
            with suppress(TimeoutError):
                async with asyncio.timeout(_SOON_ASKED):
                    await watching.settled()
        except BaseException:
            end()
            raise
        return end

    def _take_notice(self, link: Connection, notice: ServerNotice) -> None:
        for listener in [*self._listeners]:
            listener(link.connector, link.identity, notice)

    # Tools

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        return await self._with_link(connector, caller, self._listed)

    async def list_tools_again(self, connector: Connector, identity: str) -> Listing | None:
        link = self._links.get((connector.id, identity))
        if link is None or link.usage.is_closing or not link.is_connected:
            return None
        link.usage.lease()
        try:
            return await self._listed(link)
        finally:
            link.usage.release()

    def _listed(self, link: Connection) -> Awaitable[Listing]:
        connector = link.connector
        wait = connector.connect_limit + (connector.configuration.request_timeout or self._request_timeout)
        return link.list_tools(asyncio.get_running_loop().time() + wait)

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        async def opened(link: Connection) -> ConnectionStatus:
            try:
                await link.ready()
            except ShuttingDown:
                raise
            except DragomanError:
                return link.status()
            return link.status()

        return await self._with_link(connector, caller, opened)

    async def disconnect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        key = (connector.id, identity_of(caller, connector.configuration.isolation))
        if link := self._links.get(key):
            await self._close_link(link)
        return self.status(connector, caller)

    async def retire(self, connector: Connector) -> None:
        self._retired[connector.id] = connector.revision
        links = [link for (connector_id, _), link in self._links.items() if connector_id == connector.id]
        await asyncio.gather(*(self._close_link(link) for link in links))

    async def close_for_user(self, workspace: str, user: str) -> None:
        links = [
            link for (_, identity), link in self._links.items() if holder_of(identity) == (workspace, user)
        ]
        await asyncio.gather(*(self._close_link(link) for link in links))

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        key = (connector.id, identity_of(caller, connector.configuration.isolation))
        link = self._links.get(key)
        if link is not None and connector.enabled:
            return link.status()
        return ConnectionStatus(
            connector_id=connector.id,
            slug=connector.slug,
            identity=key[1],
            state="disconnected" if connector.enabled else "disabled",
            era=connector.era,
        )

    def statuses(self) -> list[ConnectionStatus]:
        """Every link there is, for `doctor` and for the metrics."""
        return [link.status() for link in self._links.values()]

    # Links

    async def _with_link(
        self,
        connector: Connector,
        caller: Caller,
        use: Callable[[Connection], Awaitable[Result]],
        *,
        can_ask: bool = False,
    ) -> Result:
        """A connection that was begun when nobody could be asked gives way to one for who can be."""
        can_ask = can_ask or (
            self.has_people and "elicitation" in connector.configuration.client_capabilities
        )
        key = (connector.id, identity_of(caller, connector.configuration.isolation))
        while True:
            link = self._links.get(key)
            if (
                link is None
                or link.usage.is_closing
                or link.connector.revision < connector.revision
                or (can_ask and not link.takes_questions)
            ):
                link = self._open_link(key, connector, can_ask)
            elif link.is_connected:
                self._observer.reused(connector)
            link.usage.lease()
            try:
                return await use(link)
            except ShuttingDown:
                if self._is_closing:
                    raise
            finally:
                link.usage.release()

    def _open_link(self, key: Key, connector: Connector, can_ask: bool) -> Connection:
        if self._is_closing:
            raise ShuttingDown("Dragoman is shutting down", hint="call again when it is back")
        if connector.revision <= self._retired.get(connector.id, 0):
            # A call that outlived its connection: nobody would ever close what it opened now.
            raise Unreachable(f"{connector.slug} was changed or removed meanwhile", hint="call again")
        old = self._links.pop(key, None)
        if old is not None:
            old.close()
        watching = self._watching.setdefault(key, ResourceSubscriptions())
        link = Connection(connector, key[1], self._opener(key), self._observer, watching, can_ask=can_ask)
        link.on_notice = self._take_notice
        self._links[key] = link
        owner = self._tasks.create_task(link.run(), name=f"owner of {connector.slug} for {key[1]}")
        self._owners[link] = owner
        owner.add_done_callback(lambda _: self._forget(key, link))
        return link

    def _forget(self, key: Key, link: Connection) -> None:
        self._owners.pop(link, None)
        if self._links.get(key) is link:
            del self._links[key]
            if not self._watching[key].uris:
                del self._watching[key]

    async def _close_link(self, link: Connection) -> None:
        """Closed on return, unless calls are under way: then the owner leaves with the last of them.

        A server that takes its time to end does so in the background.
        """
        link.close()
        owner = self._owners.get(link)
        if owner is None:
            return
        if link.usage.leases:
            link.usage.on_last_release = owner.cancel
            return
        owner.cancel()
        await asyncio.wait([owner], timeout=_TIME_TO_CLOSE)

    def _make_room(self, key: Key, connector: Connector) -> None:
        """Closes the least recently used idle link where a cap is reached; refuses when all are busy."""
        others = [(other, link) for other, link in self._links.items() if other != key and link.is_open]
        own = [link for other, link in others if other[0] == connector.id]
        self._make_room_among(own, connector.configuration.max_servers, f"{connector.slug} has")
        self._make_room_among([link for _, link in others], self._max_servers, "there are")

    def _make_room_among(self, open_ones: list[Connection], cap: int | None, subject: str) -> None:
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
            on_wire: Callable[[Wire], None],
            *,
            can_ask: bool,
        ) -> AsyncGenerator[McpSession]:
            self._make_room(key, connector)
            reach = self._clients.for_connector(connector)
            secrets = await self._secrets.reveal(connector, key[1])
            bearer = self._secrets.bearer(connector, key[1])
            async with (
                self._turn_to_start(connector) as started,
                asyncio.timeout(connector.connect_limit) as limit,
                open_session(
                    connector, secrets, reach, on_notice, on_wire, bearer, can_ask=can_ask
                ) as session,
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
