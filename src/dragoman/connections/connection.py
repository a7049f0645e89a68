"""One link to one connector for one identity, from the first wish for it until it is closed on purpose.

The owner task (`run`, started by the pool) opens and leaves every session; callers only call. When a
session is lost the owner opens another, for ever, with a backoff that any call cuts short.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol, cast

from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError

from dragoman.connections.faults import WireFault
from dragoman.connections.session import Session
from dragoman.connections.source import LinkStatus, Listing, Observer, SourceCall, State
from dragoman.connections.wire import Wire
from dragoman.connector import Connector
from dragoman.errors import (
    ConnectTimeout,
    DragomanError,
    Forbidden,
    InvalidConfig,
    NeedsAuth,
    ProtocolFault,
    ShuttingDown,
    Timeout,
    ToolFailed,
    Unreachable,
)
from dragoman.tool import RawResult

_BACKOFF_FIRST = 1.0
_BACKOFF_CAP = 30.0
_PROBE_TIMEOUT = 5.0
_TIMEOUTS_BEFORE_DOUBT = 2
_FINAL = (InvalidConfig, NeedsAuth, Forbidden)


class Opener(Protocol):
    """How the owner gets a session; the pool fills it in."""

    def __call__(
        self, connector: Connector, on_tools_changed: Callable[[], None], on_wire: Callable[[Wire], None]
    ) -> AbstractAsyncContextManager[Session]: ...


@dataclass(slots=True)
class _Phase:
    state: State = "disconnected"
    cause: str | None = None
    hint: str | None = None
    next_attempt: datetime | None = None
    since: datetime | None = None


class Connection:
    """Leases count the calls under way: a leased connection is neither idle nor closed."""

    def __init__(self, connector: Connector, identity: str, opener: Opener, observer: Observer) -> None:
        self.connector = connector
        self.identity = identity
        self.last_used = asyncio.get_running_loop().time()
        self.leases = 0
        self._opener = opener
        self._observer = observer
        self._phase = _Phase()
        self._session: Session | None = None
        self._wire: Wire | None = None
        self._attempt = 0
        self._reconnects = 0
        self._ever_connected = False
        self._timeouts = 0
        self._is_suspect = False
        self._is_closing = False
        self._nudge = asyncio.Event()  # wakes the owner out of watching
        self._wish = asyncio.Event()  # a caller wants a session now
        self._ready: asyncio.Future[Session] = asyncio.get_running_loop().create_future()

    # Seen from outside

    @property
    def is_open(self) -> bool:
        """Whether it holds, or is about to hold, something that costs a process or a socket."""
        return self._session is not None or self._phase.state in ("connecting", "reconnecting")

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    @property
    def is_idle(self) -> bool:
        return self.leases == 0

    @property
    def is_closing(self) -> bool:
        return self._is_closing

    def status(self) -> LinkStatus:
        phase, session, wire = self._phase, self._session, self._wire
        stderr = getattr(getattr(wire, "process", None), "stderr", ())
        return LinkStatus(
            connector_id=self.connector.id,
            slug=self.connector.slug,
            identity=self.identity,
            state=phase.state,
            cause=phase.cause,
            hint=phase.hint,
            attempt=self._attempt,
            next_attempt=phase.next_attempt,
            since=phase.since,
            era=session.era if session else self.connector.era,
            pid=session.pid if session else None,
            in_flight=self.leases,
            reconnects=self._reconnects,
            stderr=stderr,
            garbage_lines=wire.garbage if wire else 0,
        )

    def lease(self) -> None:
        """Counts a caller in; whoever leases releases."""
        self.leases += 1

    def release(self) -> None:
        self.leases -= 1
        self.last_used = asyncio.get_running_loop().time()
        if self._is_closing and self.leases == 0:
            self._nudge.set()

    def close(self) -> None:
        """No new calls; calls under way finish, then the owner leaves."""
        self._is_closing = True
        self._nudge.set()
        self._wish.set()

    # What callers do

    async def call(self, call: SourceCall) -> RawResult:
        """One tool call with its deadline, its retries and its honest outcome."""
        safe = call.tool.definition.annotations.is_safe_to_repeat
        subject = f"{self.connector.slug}/{call.tool.original_name}"
        has_left = False
        tries = 0
        try:
            async with asyncio.timeout_at(call.deadline):
                while True:
                    tries += 1
                    try:
                        session = self._session or await self.ready()
                        has_left = True
                        result = await session.call_tool(call.tool, call.arguments)
                        self._timeouts = 0
                        return result if tries == 1 else _with_attempts(result, tries)
                    except WireFault as fault:
                        self._notice(fault)
                        has_left = has_left and not fault.never_ran
                        delay = self._delay_before(tries, fault, safe)
                        if delay is None:
                            raise fault.as_error(subject, safe) from None
                    except (Unreachable, ConnectTimeout):
                        delay = self._pause(tries)
                        if delay is None:
                            raise
                    await asyncio.sleep(delay)
        except TimeoutError:
            raise self._timed_out(subject, safe, has_left) from None
        except MCPError as error:
            raise _refused(subject, error) from None

    async def list_tools(self, deadline: float) -> Listing:
        subject = f"{self.connector.slug}: the list of tools"
        try:
            async with asyncio.timeout_at(deadline):
                session = self._session or await self.ready()
                return await session.list_tools()
        except TimeoutError:
            raise Timeout(f"{subject} did not come in time", hint="raise request_timeout") from None
        except WireFault as fault:
            self._notice(fault)
            raise fault.as_error(subject, safe=True) from None
        except MCPError as error:
            raise _refused(subject, error) from None

    async def ready(self) -> Session:
        """The open session, or the outcome of the attempt that this wish sets off."""
        if self._session is not None:
            return self._session
        if self._is_closing:
            raise ShuttingDown("the connection is being closed", hint="call again")
        self._wish.set()
        return await asyncio.shield(self._ready)

    # The owner

    async def run(self) -> None:
        """Until it is closed: wait for a wish, hold a session, take stock of how it ended."""
        try:
            while not self._is_closing:
                await self._wish.wait()
                self._wish.clear()
                if not self._is_closing:
                    self._settle(await self._hold_session())
                    await self._rest()
        finally:
            self._is_closing = True
            self._session = None
            self._enter("disconnected")
            self._fail_ready(ShuttingDown("the connection was closed", hint="call again"))

    async def _hold_session(self) -> DragomanError | None:
        """One attempt and, if it succeeds, the life of its session. None when it was closed on purpose."""
        self._attempt += 1
        self._enter("reconnecting" if self._ever_connected else "connecting", keep_cause=True)
        started = asyncio.get_running_loop().time()
        end: DragomanError | None = None
        try:
            async with self._opener(self.connector, self._tell_tools_changed, self._take_wire) as session:
                self._opened(session, asyncio.get_running_loop().time() - started)
                try:
                    end = await self._watch(session)
                finally:
                    self._withdraw_session()
        except asyncio.CancelledError:
            # anyio may cancel a scope of its own; only a real cancellation ends the owner.
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            end = end or Unreachable("the session was cut")
        except Exception as error:  # noqa: BLE001 - boundary: whatever a server does, the owner lives on
            end = end or self._explained(error)
        return end

    def _withdraw_session(self) -> None:
        """From now on callers wait for the next one."""
        self._session = None
        if self._ready.done():
            self._ready = asyncio.get_running_loop().create_future()
        self._nudge.set()

    def _opened(self, session: Session, seconds: float) -> None:
        is_reconnect = self._ever_connected
        self._ever_connected = True
        self._reconnects += is_reconnect
        self._attempt = 0
        self._timeouts = 0
        self._is_suspect = False
        self._session = session
        self.connector = replace(self.connector, era=session.era)  # the next attempt need not ask again
        self.last_used = asyncio.get_running_loop().time()
        session.wire.on_lost = self._withdraw_session
        if not self._ready.done():
            self._ready.set_result(session)
        self._enter("connected")
        self._observer.connected(self.connector, seconds, is_reconnect)

    async def _watch(self, session: Session) -> DragomanError | None:
        """Looks after an open session; returns why it must end."""
        follower = None
        if session.is_modern and session.announces_tools:
            follower = asyncio.ensure_future(self._follow_changes(session))
        try:
            while True:
                if fault := session.wire.fault:
                    return fault.as_error("", safe=True)
                if self._is_closing and self.leases == 0:
                    return None
                if self._may_rest():
                    self._is_closing = True
                    return None
                if self._is_suspect and (error := await self._probed(session)):
                    return error
                await self._nudged(self._until_next_look())
        finally:
            if follower is not None:
                follower.cancel()
                await asyncio.gather(follower, return_exceptions=True)

    async def _probed(self, session: Session) -> DragomanError | None:
        """Asks a server in doubt whether it still answers."""
        self._is_suspect = False
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT):
                await session.probe()
        except TimeoutError:
            if self.leases and self._timeouts < _TIMEOUTS_BEFORE_DOUBT:
                return None  # busy, as far as anyone can tell: calls under way have deadlines of their own
            return Unreachable("the server does not answer any more", hint="Dragoman opens a new connection")
        except WireFault as fault:
            return fault.as_error("", safe=True)
        self._timeouts = 0
        return None

    async def _nudged(self, seconds: float | None) -> None:
        """Sleeps until something happens or it is time to look at the server's health."""
        self._nudge.clear()
        if (session := self._session) and session.wire.fault:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._nudge.wait()
        except TimeoutError:
            interval = self.connector.configuration.health_interval
            self._is_suspect = bool(interval) and seconds is not None and seconds >= interval

    def _until_next_look(self) -> float | None:
        configuration = self.connector.configuration
        looks = [configuration.health_interval] if configuration.health_interval else []
        if configuration.idle_ttl and not configuration.eager and self.leases == 0:
            looks.append(max(0.0, self._idle_at() - asyncio.get_running_loop().time()))
        return min(looks) if looks else None

    def _idle_at(self) -> float:
        return self.last_used + self.connector.configuration.idle_ttl

    def _may_rest(self) -> bool:
        configuration = self.connector.configuration
        if not configuration.idle_ttl or configuration.eager or self.leases:
            return False
        return asyncio.get_running_loop().time() >= self._idle_at()

    def _settle(self, error: DragomanError | None) -> None:
        """The state after a session, and what those who wait for one are told."""
        if error is None or self._is_closing:
            return
        state: State = "needs_auth" if isinstance(error, NeedsAuth) else "error"
        delay = self._backoff(error)
        # A session that was just lost gets its first new attempt at once; that is no error yet.
        if self._ever_connected and self._attempt == 0 and delay is not None:
            state = "reconnecting"
        self._enter(state, error, delay)
        if state != "reconnecting":
            self._fail_ready(error)

    async def _rest(self) -> None:
        """Waits out the backoff, unless a caller wants a session now."""
        if self._is_closing:
            return
        at = self._phase.next_attempt
        if at is None:
            return
        try:
            async with asyncio.timeout(max(0.0, (at - datetime.now(UTC)).total_seconds())):
                await self._wish.wait()
        except TimeoutError:
            self._wish.set()

    def _backoff(self, error: DragomanError) -> float | None:
        """Seconds until the next attempt in the background; None when only a call or a change helps."""
        if isinstance(error, _FINAL) or not self.connector.configuration.auto_reconnect:
            return None
        if self._ever_connected and self._attempt == 0:
            return 0.0
        delay = min(_BACKOFF_CAP, _BACKOFF_FIRST * 2 ** min(self._attempt - 1, 10))
        return delay * random.uniform(0.85, 1.15)  # noqa: S311 - jitter, not a secret

    async def _follow_changes(self, session: Session) -> None:
        """The 2026 era's subscription to changed lists; reopened, with a refetch, when it is lost."""
        delay = 1.0
        while True:
            try:
                async with listen(session.client, tools_list_changed=True) as changes:
                    delay = 1.0
                    async for _ in changes:
                        self._tell_tools_changed()
            except (SubscriptionLost, WireFault):
                pass
            except (MCPError, TimeoutError):
                return  # the server does not offer it after all
            await asyncio.sleep(delay)
            delay = min(delay * 2, 60.0)
            self._tell_tools_changed()

    # Small words

    def _notice(self, fault: WireFault) -> None:
        if fault.kind in ("refused", "lost", "unauthorized"):
            self._is_suspect = True
            self._nudge.set()

    def _timed_out(self, subject: str, safe: bool, has_left: bool) -> DragomanError:
        if not has_left:
            cause = f" ({self._phase.cause})" if self._phase.cause else ""
            return ConnectTimeout(
                f"{subject}: no connection in time{cause}",
                hint="the server may be slow to start; raise connect_timeout or request_timeout",
                cause=self._phase.cause,
            )
        self._timeouts += 1
        if self._timeouts >= _TIMEOUTS_BEFORE_DOUBT or self.leases <= 1:
            self._is_suspect = True
            self._nudge.set()
        return WireFault("timeout", "no answer before the deadline").as_error(subject, safe)

    def _delay_before(self, tries: int, fault: WireFault, safe: bool) -> float | None:
        """Seconds before the next try of this call, or None when there must be none."""
        if not fault.may_be_repeated(safe):
            return None
        pause = self._pause(tries)
        if pause is None or (tries == 1 and fault.is_repeated_at_once):
            return None if pause is None else 0.0
        return pause if fault.retry_after is None else fault.retry_after

    def _pause(self, tries: int) -> float | None:
        policy = self.connector.configuration.retry
        if tries >= policy.tries:
            return None
        return min(policy.cap, policy.delay * policy.factor ** (tries - 1))

    def _tell_tools_changed(self) -> None:
        self._observer.tools_changed(self.connector, self.identity)

    def _take_wire(self, wire: Wire) -> None:
        self._wire = wire

    def _explained(self, error: BaseException) -> DragomanError:
        """The one cause in whatever the SDK, the wire or the system raised."""
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if isinstance(error, DragomanError):
            return error
        if isinstance(error, WireFault):
            return error.as_error("", safe=True)
        if isinstance(error, TimeoutError):
            seconds = self.connector.configuration.connect_timeout
            words = f": {' | '.join(lines[-3:])}" if (lines := self.status().stderr) else ""
            return ConnectTimeout(
                f"the server did not answer within {seconds:g} s{words}", hint="raise connect_timeout"
            )
        if isinstance(error, MCPError):
            return ProtocolFault(f"the server refused to begin: {error.error.message}")
        return ProtocolFault(f"the server does not speak MCP: {type(error).__name__}: {str(error)[:300]}")

    def _fail_ready(self, error: DragomanError) -> None:
        ready = self._ready
        if not ready.done():
            ready.set_exception(error)
            ready.exception()  # seen, also when nobody waits
        self._ready = asyncio.get_running_loop().create_future()

    def _enter(
        self,
        state: State,
        error: DragomanError | None = None,
        delay: float | None = None,
        *,
        keep_cause: bool = False,
    ) -> None:
        before, now = self._phase, datetime.now(UTC)
        self._phase = _Phase(
            state=state,
            cause=error.message if error else before.cause if keep_cause else None,
            hint=error.hint if error else before.hint if keep_cause else None,
            next_attempt=now + timedelta(seconds=delay) if delay is not None else None,
            since=before.since if before.state == state else now,
        )
        self._observer.state_changed(self.connector, self.status())


def _refused(subject: str, error: MCPError) -> ToolFailed:
    return ToolFailed(
        f"{subject}: {error.error.message or 'the server refused'}", cause=f"code {error.error.code}"
    )


def _with_attempts(result: RawResult, tries: int) -> RawResult:
    return RawResult(
        content=result.content,
        structured=result.structured,
        has_structured=result.has_structured,
        is_error=result.is_error,
        meta=result.meta,
        attempts=tries,
    )
