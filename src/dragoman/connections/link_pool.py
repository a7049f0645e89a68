"""The links to all connectors of one kind, by (connector, identity). Owns their tasks.

A link appears with the first wish for it and goes when its task ends: idle, evicted, retired or closed.
Knows nothing of what a link is made of: who extends it makes them.
"""

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Generic, Protocol, Self, TypeVar

from dragoman.background_tasks import BackgroundTasks
from dragoman.connections.leases import ConnectionLeases
from dragoman.connections.source import (
    ConnectionObserver,
    ConnectionStatus,
    Listing,
    SourceCall,
    SourceChannel,
)
from dragoman.connector import Connector
from dragoman.errors import DragomanError, ShuttingDown, Unreachable
from dragoman.scope import Caller, holder_of, identity_of
from dragoman.tool import RawResult

_LAST_CALLS = 4.0
_TIME_TO_CLOSE = 1.5
_EVERY_REVISION = sys.maxsize
Key = tuple[str, str]


class Link(Protocol):
    connector: Connector
    usage: ConnectionLeases

    @property
    def is_connected(self) -> bool: ...

    @property
    def takes_questions(self) -> bool: ...

    def status(self) -> ConnectionStatus: ...

    def close(self) -> None:
        """No new calls; those under way finish."""
        ...

    async def run(self) -> None:
        """What its owner does until it is closed."""
        ...

    async def open(self) -> None:
        """Returns once it is connected, or raises why it is not."""
        ...

    async def call(self, call: SourceCall) -> RawResult: ...


AnyLink = TypeVar("AnyLink", bound=Link)
Result = TypeVar("Result")


class LinkPool(ABC, Generic[AnyLink]):
    """A `Source` that reaches its connectors by links."""

    def __init__(self, observer: ConnectionObserver) -> None:
        self._observer = observer
        self._links: dict[Key, AnyLink] = {}
        self._owners: dict[AnyLink, asyncio.Task[None]] = {}
        self._retired: dict[str, int] = {}
        self._disconnected: set[Key] = set()  # on purpose, and nobody wanted them since
        self._in_use = 0
        self._is_quiet = asyncio.Event()
        self._is_closing = False
        self._stack = AsyncExitStack()

    @abstractmethod
    def make_link(self, key: Key, connector: Connector, can_ask: bool) -> AnyLink: ...

    @abstractmethod
    def listed(self, link: AnyLink, *, must_be_new: bool) -> Awaitable[Listing]: ...

    def can_ask(self, connector: Connector, channel: SourceChannel | None) -> bool:
        """Whether there is somebody whom the server may ask."""
        return False

    is_ready = True
    """Whether all is loaded that links are made of."""

    async def make_ready(self) -> None:
        """Loads it, while others go on."""
        self.is_ready = True

    async def enter_parts(self, stack: AsyncExitStack) -> None:
        """What links need and this pool owns; left after the last of them."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self.enter_parts(stack)
            self._tasks = await stack.enter_async_context(BackgroundTasks())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Calls under way get a few seconds; then every owner is told to leave, whatever its server does."""
        self._is_closing = True
        for link in [*self._owners]:
            link.close()
        if self._in_use:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CALLS):
                    await self._is_quiet.wait()
        for task in self._owners.values():
            task.cancel()
        await self._stack.aclose()

    # What a source does

    async def call(self, call: SourceCall) -> RawResult:
        self.check_wanted(call.connector, call.caller)
        return await self.with_link(call.connector, call.caller, lambda link: link.call(call), call.channel)

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        self._disconnected.discard(key_of(connector, caller))
        return await self.with_link(connector, caller, lambda link: self.listed(link, must_be_new=True))

    async def list_tools_again(self, connector: Connector, identity: str) -> Listing | None:
        link = self._links.get((connector.id, identity))
        if link is None or link.usage.is_closing or not link.is_connected:
            return None
        return await self._use(link, lambda link: self.listed(link, must_be_new=False))

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        self._disconnected.discard(key_of(connector, caller))

        async def opened(link: AnyLink) -> ConnectionStatus:
            try:
                await link.open()
            except ShuttingDown:
                raise
            except DragomanError:
                return link.status()
            return link.status()

        return await self.with_link(connector, caller, opened)

    async def disconnect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        key = key_of(connector, caller)
        self._disconnected.add(key)
        if link := self._links.get(key):
            await self.close_link(link)
        return self.status(connector, caller)

    async def retire(self, connector: Connector, *, is_removed: bool = False) -> None:
        revision = _EVERY_REVISION if is_removed else connector.revision
        self._retired[connector.id] = max(revision, self._retired.get(connector.id, 0))
        await self._close_links(lambda key: key[0] == connector.id)

    async def close_for_user(self, workspace: str, user: str, connector_id: str | None = None) -> None:
        await self._close_links(
            lambda key: holder_of(key[1]) == (workspace, user) and connector_id in (None, key[0])
        )

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        key = key_of(connector, caller)
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

    def is_retired(self, connector_id: str) -> bool:
        """Whether it was changed or removed while this process ran."""
        return connector_id in self._retired

    def has_link(self, key: Key) -> bool:
        return key in self._links

    def statuses(self) -> list[ConnectionStatus]:
        """Every link there is, for `doctor` and for the metrics."""
        return [link.status() for link in self._links.values()]

    def known_statuses(self) -> list[ConnectionStatus]:
        """The same with those that other nodes told of."""
        return self.statuses()

    def check_wanted(self, connector: Connector, caller: Caller) -> None:
        """What was disconnected on purpose comes back with a call only where it may reconnect by itself."""
        if not self._disconnected:
            return
        key = key_of(connector, caller)
        if key in self._disconnected and not connector.configuration.auto_reconnect:
            raise Unreachable(
                f"{connector.slug} was disconnected",
                hint=f"connect it again: dragoman connectors connect {connector.slug}",
            )
        self._disconnected.discard(key)

    # Links

    async def with_link(
        self,
        connector: Connector,
        caller: Caller,
        use: Callable[[AnyLink], Awaitable[Result]],
        channel: SourceChannel | None = None,
    ) -> Result:
        """Uses the link of this caller; one that is closed meanwhile by another is opened anew.

        A link that was begun when nobody could be asked gives way to one for who can be.
        """
        key, can_ask = key_of(connector, caller), self.can_ask(connector, channel)
        while True:
            link = self._links.get(key)
            if (
                link is None
                or link.usage.is_closing
                or link.connector.revision < connector.revision
                or (can_ask and not link.takes_questions)
            ):
                if not self.is_ready:
                    await self.make_ready()
                    continue
                link = self._open_link(key, connector, can_ask)
            elif link.is_connected:
                self._observer.reused(connector)
            try:
                return await self._use(link, use)
            except ShuttingDown:
                if self._is_closing:
                    raise

    async def _use(self, link: AnyLink, use: Callable[[AnyLink], Awaitable[Result]]) -> Result:
        link.usage.lease()
        self._in_use += 1
        try:
            return await use(link)
        finally:
            self._in_use -= 1
            link.usage.release()
            if self._is_closing and not self._in_use:
                self._is_quiet.set()

    def _open_link(self, key: Key, connector: Connector, can_ask: bool) -> AnyLink:
        if self._is_closing:
            raise ShuttingDown("Dragoman is shutting down", hint="call again when it is back")
        if connector.revision <= self._retired.get(connector.id, 0):
            # A call that outlived its connection: nobody would ever close what it opened now.
            raise Unreachable(f"{connector.slug} was changed or removed meanwhile", hint="call again")
        self.check_held(key, connector)
        if old := self._links.pop(key, None):
            old.close()
        link = self._links[key] = self.make_link(key, connector, can_ask)
        owner = self._tasks.start(link.run(), f"owner of {connector.slug} for {key[1]}")
        self._owners[link] = owner
        owner.add_done_callback(lambda _: self._owner_ended(key, link))
        return link

    def _owner_ended(self, key: Key, link: AnyLink) -> None:
        self._owners.pop(link, None)
        if self._links.get(key) is link:
            del self._links[key]
            self.forgotten(key)

    def forgotten(self, key: Key) -> None:
        """There is no link of this key any more."""

    def check_held(self, key: Key, connector: Connector) -> None:
        """`NotHeld` where another node has the link of this key."""

    async def _close_links(self, are_meant: Callable[[Key], bool]) -> None:
        links = [link for key, link in self._links.items() if are_meant(key)]
        await asyncio.gather(*(self.close_link(link) for link in links))

    async def close_link(self, link: AnyLink) -> None:
        """Closed on return, unless calls under way need its owner: then that leaves with the last of them.

        A server that takes its time to end does so in the background.
        """
        link.close()
        owner = self._owners.get(link)
        if owner is None:
            return
        if link.usage.leases and self.calls_need_owner:
            link.usage.on_last_release = owner.cancel
            return
        owner.cancel()
        await asyncio.wait([owner], timeout=_TIME_TO_CLOSE)

    calls_need_owner = True


def key_of(connector: Connector, caller: Caller) -> Key:
    return connector.id, identity_of(caller, connector.configuration.isolation)
