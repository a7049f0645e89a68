"""What the owner of a connection does while a session is open: health checks, idle timeout, notifications.

Runs in the owner's task and owns nothing but the subscriptions that it opens.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial

from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    Subscription,
    SubscriptionLost,
    ToolsListChanged,
    listen,
)
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from dragoman.connections.leases import ConnectionLeases
from dragoman.connections.session import McpSession
from dragoman.connections.source import ServerNotice
from dragoman.connections.subscriptions import ResourceSubscriptions
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Configuration
from dragoman.errors import DragomanError, Unreachable

_PROBE_TIMEOUT = 5.0
_LISTEN_FIRST, _LISTEN_CAP = 1.0, 60.0
_LISTS = (ServerNotice("tools"), ServerNotice("prompts"), ServerNotice("resources"))


class Upkeep:
    def __init__(
        self,
        configuration: Configuration,
        usage: ConnectionLeases,
        watching: ResourceSubscriptions,
        on_notice: Callable[[ServerNotice], None],
    ) -> None:
        self._health_interval = configuration.health_interval
        self._health_at = asyncio.get_running_loop().time() + configuration.health_interval
        self._idle_ttl = 0.0 if configuration.eager else configuration.idle_ttl
        self._usage = usage
        self._watching = watching
        self._tell = on_notice

    async def watch(self, session: McpSession) -> DragomanError | None:
        """Until the session must end: why, or None when it ends on purpose (closed, idle)."""
        async with asyncio.TaskGroup() as tasks:
            followers = [
                tasks.create_task(one)
                for one in (self._follow_lists(session), self._follow_resources(session))
            ]
            try:
                return await self._until_end(session)
            finally:
                for follower in followers:
                    follower.cancel()
                self._watching.unsettle()

    async def _until_end(self, session: McpSession) -> DragomanError | None:
        usage = self._usage
        while True:
            if fault := session.wire.fault:
                return fault.as_error("", safe=True)
            if self._is_idle():
                usage.close()
            if usage.is_closing and usage.leases == 0:
                return None
            if usage.is_suspect and (error := await self._asked(session)):
                return error
            await self._sleep()

    async def _sleep(self) -> None:
        """Until something happens, the connection may be idle, or it is time to ask for its health."""
        usage, loop = self._usage, asyncio.get_running_loop()
        looks = [self._health_at] if self._health_interval else []
        if self._idle_ttl:
            # A call under way is no idleness; nobody tells when it ends, so it is looked at again.
            is_used = usage.leases or self._watching.uris
            looks.append((loop.time() if is_used else usage.last_used) + self._idle_ttl)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(looks, default=None)):
                await usage.nudge.wait()
        usage.nudge.clear()
        if self._health_interval and loop.time() >= self._health_at:
            usage.is_suspect = True
            self._health_at = loop.time() + self._health_interval

    def _is_idle(self) -> bool:
        usage = self._usage
        if not self._idle_ttl or usage.leases or self._watching.uris:
            return False
        return asyncio.get_running_loop().time() >= usage.last_used + self._idle_ttl

    async def _asked(self, session: McpSession) -> DragomanError | None:
        """Probes a server that may be gone. Returns the cause if it does not answer."""
        usage = self._usage
        usage.is_suspect = False
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT):
                await session.probe()
        except TimeoutError:
            if usage.leases and not usage.is_in_doubt:
                return None  # busy, as far as anyone can tell: calls under way have deadlines of their own
            return Unreachable("the server does not answer any more", hint="Dragoman opens a new connection")
        except WireFault as fault:
            return fault.as_error("", safe=True)
        usage.answered()
        return None

    async def _follow_lists(self, session: McpSession) -> None:
        """The 2026 era's subscription to changed lists; reopened, with a refetch, when it is lost."""
        if not (session.is_modern and session.announces):
            return
        announced = session.announces
        stream = partial(
            listen,
            session.client,
            tools_list_changed="tools" in announced,
            prompts_list_changed="prompts" in announced,
            resources_list_changed="resources" in announced,
        )
        await self._listen(stream, [notice for notice in _LISTS if notice.kind in announced])

    async def _follow_resources(self, session: McpSession) -> None:
        """Subscribes and unsubscribes at the server whenever the subscribed resources change."""
        watching = self._watching
        told: frozenset[str] = frozenset()
        while session.tells_of_resources:
            wanted = watching.take()
            if session.is_modern:
                await self._listen_to_resources(session, wanted, told)
            else:
                with suppress(WireFault):  # a lost session is noticed elsewhere
                    for uri in (*(wanted - told), *(told - wanted)):
                        await session.subscribe(uri, wanted=uri in wanted)
                watching.settle(wanted)
                await watching.changed()
            told = wanted

    async def _listen_to_resources(
        self, session: McpSession, wanted: frozenset[str], before: frozenset[str]
    ) -> None:
        """One subscription for all, until others are wanted. What changes between two of them is told too."""
        watching = self._watching
        missed = {*before} & wanted

        def opened() -> None:
            watching.settle(wanted)
            while missed:
                self._tell(ServerNotice("resource", missed.pop()))

        async def heard() -> None:
            if wanted:
                uris = sorted(wanted)
                stream = partial(listen, session.client, resource_subscriptions=uris)
                await self._listen(stream, [ServerNotice("resource", uri) for uri in uris], opened)
            watching.settle(wanted)  # also where the server does not offer it after all

        async with asyncio.TaskGroup() as tasks:
            hearing = tasks.create_task(heard())
            await watching.changed()
            hearing.cancel()

    async def _listen(
        self,
        open_stream: Callable[[], AbstractAsyncContextManager[Subscription]],
        refetch: Sequence[ServerNotice],
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        """Passes on what comes. A stream that is lost is opened again; all of it may have changed then."""
        delay = _LISTEN_FIRST
        while True:
            try:
                async with open_stream() as changes:
                    delay = _LISTEN_FIRST
                    on_open()
                    async for event in changes:
                        self._tell(_notice(event))
            except (SubscriptionLost, WireFault):
                pass
            except TimeoutError:
                return
            except MCPError as error:
                if error.code != CONNECTION_CLOSED:
                    return  # the server does not offer it after all
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LISTEN_CAP)
            for notice in refetch:
                self._tell(notice)


def _notice(event: ServerEvent) -> ServerNotice:
    match event:
        case PromptsListChanged():
            return ServerNotice("prompts")
        case ResourcesListChanged():
            return ServerNotice("resources")
        case ResourceUpdated():
            return ServerNotice("resource", event.uri)
        case ToolsListChanged():
            return ServerNotice("tools")
