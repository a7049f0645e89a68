"""What the owner does while a session is open: health, idleness, and the server's news of its tools.

Runs in the owner's task and owns nothing but the subscription that it opens.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from dragoman.connections.faults import WireFault
from dragoman.connections.session import Session
from dragoman.connections.usage import Usage
from dragoman.connector import Configuration
from dragoman.errors import DragomanError, Unreachable

_PROBE_TIMEOUT = 5.0
_LISTEN_FIRST, _LISTEN_CAP = 1.0, 60.0


class Upkeep:
    def __init__(
        self, configuration: Configuration, usage: Usage, on_tools_changed: Callable[[], None]
    ) -> None:
        self._health_interval = configuration.health_interval
        self._health_at = asyncio.get_running_loop().time() + configuration.health_interval
        self._idle_ttl = 0.0 if configuration.eager else configuration.idle_ttl
        self._usage = usage
        self._tell_tools_changed = on_tools_changed

    async def watch(self, session: Session) -> DragomanError | None:
        """Until the session must end: why, or None when it ends on purpose (closed, idle)."""
        async with asyncio.TaskGroup() as tasks:
            follower = tasks.create_task(self._follow_changes(session))
            try:
                return await self._until_end(session)
            finally:
                follower.cancel()

    async def _until_end(self, session: Session) -> DragomanError | None:
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
            looks.append((loop.time() if usage.leases else usage.last_used) + self._idle_ttl)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(looks, default=None)):
                await usage.nudge.wait()
        usage.nudge.clear()
        if self._health_interval and loop.time() >= self._health_at:
            usage.is_suspect = True
            self._health_at = loop.time() + self._health_interval

    def _is_idle(self) -> bool:
        usage = self._usage
        if not self._idle_ttl or usage.leases:
            return False
        return asyncio.get_running_loop().time() >= usage.last_used + self._idle_ttl

    async def _asked(self, session: Session) -> DragomanError | None:
        """Asks a server in doubt whether it still answers; why not, if it does not."""
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

    async def _follow_changes(self, session: Session) -> None:
        """The 2026 era's subscription to changed lists; reopened, with a refetch, when it is lost."""
        if not (session.is_modern and session.announces_tools):
            return
        delay = _LISTEN_FIRST
        while True:
            try:
                async with listen(session.client, tools_list_changed=True) as changes:
                    delay = _LISTEN_FIRST
                    async for _ in changes:
                        self._tell_tools_changed()
            except (SubscriptionLost, WireFault):
                pass
            except TimeoutError:
                return
            except MCPError as error:
                if error.code != CONNECTION_CLOSED:
                    return  # the server does not offer it after all
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LISTEN_CAP)
            self._tell_tools_changed()
