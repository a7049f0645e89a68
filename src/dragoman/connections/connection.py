"""One link to one connector for one identity, from the first wish for it until it is closed on purpose.

The owner task (`run`, started by the pool) opens and leaves every session; callers only call. When a
session is lost the owner opens another, for ever, with a backoff that any call cuts short.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, cast

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from dragoman.cluster.places import NotHeld
from dragoman.connections.leases import ConnectionLeases
from dragoman.connections.missing_credentials import credential_hint
from dragoman.connections.retry import RetrySchedule, backoff
from dragoman.connections.session import McpSession
from dragoman.connections.source import (
    ConnectionObserver,
    ConnectionStatus,
    Listing,
    ServerNotice,
    ServerRequest,
    SourceCall,
    State,
)
from dragoman.connections.subscriptions import ResourceSubscriptions
from dragoman.connections.upkeep import Upkeep
from dragoman.connections.wire import Wire
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Connector
from dragoman.errors import (
    ConnectTimeout,
    DragomanError,
    Forbidden,
    InvalidArguments,
    InvalidConfig,
    NeedsAuth,
    NotFound,
    ProtocolFault,
    ShuttingDown,
    Timeout,
    ToolFailed,
    Unreachable,
)
from dragoman.tool import RawResult

# What a server says of the name that it was asked for; the 2026 era has one code for wrong and for unknown.
_REFUSALS: Mapping[int, type[DragomanError]] = {-32002: NotFound, INVALID_PARAMS: InvalidArguments}
_SHORT_LIFE = 5.0
_FLOOD_PAUSE = 5.0
_LOOK_AGAIN = 0.5  # seconds until a task is looked at again whose server is away
_FINAL = (InvalidConfig, NeedsAuth, Forbidden)


class Opener(Protocol):
    """How the owner gets a session; the pool fills it in."""

    def __call__(
        self,
        connector: Connector,
        on_notice: Callable[[ServerNotice], None],
        on_wire: Callable[[Wire], None],
        *,
        can_ask: bool,
    ) -> AbstractAsyncContextManager[McpSession]: ...


@dataclass(slots=True)
class _Phase:
    state: State = "disconnected"
    cause: str | None = None
    hint: str | None = None
    next_attempt: datetime | None = None
    since: datetime | None = None


class Connection:
    def __init__(
        self,
        connector: Connector,
        identity: str,
        opener: Opener,
        observer: ConnectionObserver,
        watching: ResourceSubscriptions,
        *,
        can_ask: bool,
        is_held: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_held`: whether this node may use it. Where several could, one does."""
        self.connector = connector
        self.identity = identity
        self._can_ask = can_ask
        self._is_held = is_held
        self.usage = ConnectionLeases()
        self.on_notice: Callable[[Connection, ServerNotice], None] = lambda link, notice: None
        self._opener = opener
        self._observer = observer
        self._watching = watching
        self._phase = _Phase()
        self._session: McpSession | None = None
        self._wire: Wire | None = None
        self._attempt = 0
        self._reconnects = 0
        self._ever_connected = False
        self._opened_at = 0.0
        self._relapses = 0
        self._shut_until = 0.0
        self._wish = asyncio.Event()  # a caller wants a session now
        self._ready: asyncio.Future[McpSession] = asyncio.get_running_loop().create_future()

    # Seen from outside

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    @property
    def is_open(self) -> bool:
        """Whether it holds, or is about to hold, something that costs a process or a socket."""
        return self._session is not None or self._phase.state in ("connecting", "reconnecting")

    @property
    def takes_questions(self) -> bool:
        """Whether its server may ask: the 2026 era says so with each request, the 2025 era as it begins."""
        return self._can_ask or self.connector.era == "2026"

    def status(self) -> ConnectionStatus:
        phase, wire = self._phase, self._wire
        return ConnectionStatus(
            connector_id=self.connector.id,
            slug=self.connector.slug,
            identity=self.identity,
            state=phase.state,
            cause=phase.cause,
            command_hint=phase.hint,
            attempt=self._attempt,
            next_attempt=phase.next_attempt,
            since=phase.since,
            era=self.connector.era,
            pid=wire.pid if wire and not wire.fault else None,
            in_flight=self.usage.leases,
            reconnects=self._reconnects,
            stderr=tuple(map(wire.redactor.clean_excerpt, wire.stderr)) if wire else (),
            garbage_lines=wire.garbage if wire else 0,
        )

    def close(self) -> None:
        """No new calls; calls under way finish, then the owner leaves."""
        self.usage.close()
        self._wish.set()

    def cut(self) -> None:
        """Ends it now, with its server and whatever is under way: another node may hold it."""
        self.close()
        if self._wire is not None:
            self._wire.cut()

    # What callers do

    async def call(self, call: SourceCall) -> RawResult:
        """One tool call with its deadline, its retries and its honest outcome."""
        tries = RetrySchedule(self.connector.configuration.retry)
        try:
            return await self._try(call, tries)
        except DragomanError as error:
            error.attempts = tries.count
            raise

    async def _try(self, call: SourceCall, tries: RetrySchedule) -> RawResult:
        safe = call.tool.definition.annotations.is_safe_to_repeat
        subject = f"{self.connector.slug}/{call.tool.original_name}"
        has_left = False
        try:
            async with call.deadline.enforced():
                while True:
                    tries.count += 1
                    try:
                        session = self._session or await self.ready()
                        self._check_held()
                        has_left = True
                        result = await session.call_tool(call)
                        if not self._is_held():
                            raise WireFault("lost", "this node does not hold the connection any more")
                        self.usage.answered()
                        return result if tries.count == 1 else replace(result, attempts=tries.count)
                    except WireFault as fault:
                        self._notice(fault)
                        has_left = has_left and not fault.never_ran
                        if safe or not has_left:
                            self._check_held()
                        pause = tries.pause_after(fault, safe, call.deadline.left)
                        if call.channel.task is not None and fault.may_be_repeated(safe=True):
                            pause = _LOOK_AGAIN  # the task goes on without the connection
                        if pause is None:
                            raise self._told(fault, subject, safe) from None
                    except (Unreachable, ConnectTimeout):
                        self._check_held()
                        pause = tries.pause(call.deadline.left)
                        if call.channel.task is not None:
                            pause = _LOOK_AGAIN
                        if pause is None:
                            raise
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise self._timed_out(subject, safe, has_left) from None
        except MCPError as error:
            raise _refused(subject, error) from None

    async def ask(self, question: ServerRequest) -> Mapping[str, Any]:
        """A request that is no call of a tool. The server's own no is on the line as well."""
        subject = f"{self.connector.slug}: {question.method}"
        try:
            async with question.deadline.enforced():
                session = self._session or await self.ready()
                self._check_held()
                result = await session.ask(question)
                self._check_held()
                return result
        except TimeoutError:
            raise Timeout(f"{subject} was not answered in time", hint="raise request_timeout") from None
        except WireFault as fault:
            self._notice(fault)
            self._check_held()
            raise fault.as_error(subject, safe=True) from None
        except MCPError as error:
            raise _refused(subject, error, _REFUSALS.get(error.error.code, ToolFailed)) from None

    async def open(self) -> None:
        await self.ready()

    async def list_tools(self, deadline: float) -> Listing:
        subject = f"{self.connector.slug}: the list of tools"
        try:
            async with asyncio.timeout_at(deadline):
                session = self._session or await self.ready()
                listing = await session.list_tools(self.connector.configuration.max_tools)
                self._check_held()
                return listing
        except TimeoutError:
            raise Timeout(f"{subject} did not come in time", hint="raise request_timeout") from None
        except WireFault as fault:
            self._notice(fault)
            self._check_held()
            raise self._told(fault, subject, safe=True) from None
        except MCPError as error:
            raise _refused(subject, error) from None

    async def ready(self) -> McpSession:
        """The open session, or the outcome of the attempt that this wish sets off."""
        if self._session is not None:
            return self._session
        if self.usage.is_closing:
            raise ShuttingDown("the connection is being closed", hint="call again")
        if (left := self._shut_until - asyncio.get_running_loop().time()) > 0:
            cause, hint = self._phase.cause or "the server sent too much", self._phase.hint
            raise ProtocolFault(cause, hint=hint, cause="flooded", retry_after=left)
        self._wish.set()
        return await asyncio.shield(self._ready)

    def _check_held(self) -> None:
        """Nothing is sent, and no answer counts, once another node may hold it."""
        if not self._is_held():
            raise NotHeld

    def _notice(self, fault: WireFault) -> None:
        fault.message = self._clean(fault.message)
        if fault.kind in ("refused", "lost", "unauthorized"):
            self.usage.suspect()

    def _clean(self, text: str) -> str:
        return self._wire.redactor.clean_excerpt(text) if self._wire else text

    def _told(self, fault: WireFault, subject: str, safe: bool) -> DragomanError:
        error = fault.as_error(subject, safe)
        if isinstance(error, NeedsAuth):
            error.command_hint = credential_hint(self.connector)
        return error

    def _timed_out(self, subject: str, safe: bool, has_left: bool) -> DragomanError:
        if has_left:
            self.usage.timed_out()
            return WireFault("timeout", "no answer before the deadline").as_error(subject, safe)
        cause = self._phase.cause
        return ConnectTimeout(
            f"{subject}: no connection in time{f' ({cause})' if cause else ''}",
            hint="the server may be slow to start; raise connect_timeout or request_timeout",
            cause=cause,
        )

    # The owner

    async def run(self) -> None:
        """Until it is closed: wait for a wish, hold a session, take stock of how it ended."""
        try:
            while not self.usage.is_closing:
                await self._wish.wait()
                self._wish.clear()
                if not self.usage.is_closing:
                    self._settle(await self._hold_session())
                    await self._rest()
        finally:
            self.usage.close()
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
            async with self._opener(
                self.connector, self._take_notice, self._take_wire, can_ask=self._can_ask
            ) as session:
                self._opened(session, asyncio.get_running_loop().time() - started)
                upkeep = Upkeep(self.connector.configuration, self.usage, self._watching, self._take_notice)
                try:
                    end = await upkeep.watch(session)
                finally:
                    self._withdraw_session()
        except asyncio.CancelledError:
            # anyio may cancel a scope of its own; only a real cancellation ends the owner.
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            end = end or Unreachable("the session was cut")
        except Exception as error:  # noqa: BLE001 - boundary: whatever a server does, the owner lives on
            end = end or explained(error, self.connector.connect_limit, self.status().stderr)
            end.message = self._clean(end.message)
        return end

    def _opened(self, session: McpSession, seconds: float) -> None:
        is_reconnect = self._ever_connected
        self._ever_connected = True
        self._reconnects += is_reconnect
        self._attempt = 0
        self._opened_at = asyncio.get_running_loop().time()
        self._session = session
        self.connector = replace(self.connector, era=session.era)  # the next attempt need not ask again
        self.usage.renew()
        session.wire.on_lost = self._withdraw_session
        if not self._ready.done():
            self._ready.set_result(session)
        self._enter("connected")
        self._observer.connected(self.connector, self.identity, seconds, is_reconnect)

    def _withdraw_session(self) -> None:
        """From now on callers wait for the next one."""
        self._session = None
        if self._ready.done():
            self._ready = asyncio.get_running_loop().create_future()
        self.usage.nudge.set()

    def _settle(self, error: DragomanError | None) -> None:
        """The state after a session, and what those who wait for one are told."""
        if error is None or self.usage.is_closing:
            return
        if isinstance(error, NeedsAuth) and error.cause == "unauthorized":
            error.command_hint = credential_hint(self.connector)
        is_final = isinstance(error, _FINAL) or not self.connector.configuration.auto_reconnect
        if self._attempt == 0:
            is_relapse = asyncio.get_running_loop().time() - self._opened_at < _SHORT_LIFE
            self._relapses = self._relapses + 1 if is_relapse else 0
        # A session that ends as soon as it is open, again and again, is no better than none.
        failed = max(self._attempt, self._relapses - 1)
        delay = None if is_final else backoff(self.connector.configuration.reconnect, failed)
        if error.cause == "flooded":
            # No call brings it back sooner: it would be flooded again.
            delay = None if delay is None else max(delay, _FLOOD_PAUSE)
            self._shut_until = asyncio.get_running_loop().time() + (delay or _FLOOD_PAUSE)
        elif self._attempt == 0 and delay is not None:
            self._enter("reconnecting", error, delay)  # just lost: that is no error yet, callers may wait
            return
        self._enter("needs_auth" if isinstance(error, NeedsAuth) else "error", error, delay)
        self._fail_ready(error)

    async def _rest(self) -> None:
        """Waits out the backoff, unless a caller wants a session now."""
        at = self._phase.next_attempt
        if self.usage.is_closing or at is None:
            return
        try:
            async with asyncio.timeout(max(0.0, (at - datetime.now(UTC)).total_seconds())):
                await self._wish.wait()
        except TimeoutError:
            self._wish.set()

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
            hint=error.command_hint if error else before.hint if keep_cause else None,
            next_attempt=now + timedelta(seconds=delay) if delay is not None else None,
            since=before.since if before.state == state else now,
        )
        self._observer.state_changed(self.connector, self.status())

    def _take_notice(self, notice: ServerNotice) -> None:
        if notice.kind == "tools":
            self._observer.tools_changed(self.connector, self.identity)
        else:
            self.on_notice(self, notice)

    def _take_wire(self, wire: Wire) -> None:
        self._wire = wire


def _refused(subject: str, error: MCPError, kind: type[DragomanError] = ToolFailed) -> DragomanError:
    said = error.error.message or "the server refused"
    return kind(f"{subject}: {said}", cause=f"code {error.error.code}")


def explained(error: BaseException, connect_timeout: float, stderr: tuple[str, ...]) -> DragomanError:
    """Why an attempt to connect failed: the one cause in whatever the SDK, the wire or the system raised."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, DragomanError):
        return error
    if isinstance(error, WireFault):
        return error.as_error("", safe=True)
    if isinstance(error, TimeoutError):
        words = f": {' | '.join(stderr[-3:])}" if stderr else ""
        return ConnectTimeout(
            f"the server did not answer within {connect_timeout:g} s{words}", hint="raise connect_timeout"
        )
    if isinstance(error, MCPError):
        return ProtocolFault(f"the server refused to begin: {error.error.message}")
    return ProtocolFault(f"the server does not speak MCP: {type(error).__name__}: {str(error)[:300]}")
