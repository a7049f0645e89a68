"""OpenAPI services: for one identity its calls, its document, its state; and the source, which owns its task.

Calls go straight to the service, whatever became of the document: their plans are in the catalog.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from dragoman.connections.brought_secrets import brought_values, watched
from dragoman.connections.environment import expanded
from dragoman.connections.exchanged_messages import hearing
from dragoman.connections.http_clients import HttpClients
from dragoman.connections.leases import ConnectionLeases
from dragoman.connections.link_pool import Key, LinkPool
from dragoman.connections.missing_credentials import check_secrets, credential_hint
from dragoman.connections.openapi.converter import Converter
from dragoman.connections.openapi.document_reader import address, is_address
from dragoman.connections.openapi.exchange import Exchange
from dragoman.connections.openapi.operation_plan import META_KEY, OperationPlan
from dragoman.connections.openapi.request_credentials import (
    AddedCredentials,
    ServiceCredentials,
    check_target,
)
from dragoman.connections.openapi.requests import ServiceRequest, build, told_request
from dragoman.connections.openapi.responses import ServiceResponse, result_of, told_response
from dragoman.connections.openapi.schemes import resolved
from dragoman.connections.openapi.service_document import ServiceDocument, proxy_for
from dragoman.connections.retry import RetrySchedule, backoff
from dragoman.connections.source import (
    ConnectionObserver,
    ConnectionStatus,
    Listing,
    Secrets,
    SourceCall,
    State,
)
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Configuration, Connector
from dragoman.errors import DragomanError, Forbidden, InvalidConfig, NeedsAuth, ProtocolFault
from dragoman.telemetry.redaction import SHORTEST_IN_RESULTS, Redactor
from dragoman.tool import RawResult, Tool, ToolDefinition

_FINAL = (InvalidConfig, NeedsAuth, Forbidden)


@dataclass(frozen=True, slots=True)
class ServicePhase:
    state: State = "disconnected"
    cause: str | None = None
    hint: str | None = None
    attempt: int = 0
    next_attempt: datetime | None = None
    since: datetime | None = None


class ServiceState:
    """Tells `on_change` of every new phase.

    A service whose calls succeed is connected, also while its document cannot be read: the cause says so.
    """

    def __init__(self, configuration: Configuration, on_change: Callable[[], None]) -> None:
        self.phase = ServicePhase()
        self.was_ever_connected = False
        self.reconnects = 0
        self._configuration = configuration
        self._on_change = on_change
        self._served_since = False  # a call succeeded since the document was last tried

    @property
    def is_connected(self) -> bool:
        return self.phase.state == "connected"

    def trying(self) -> None:
        if not self.is_connected:
            before = self.phase
            state: State = "reconnecting" if self.was_ever_connected else "connecting"
            self._enter(ServicePhase(state, before.cause, before.hint, before.attempt, None))

    def document_read(self) -> bool:
        """Whether that made a connection of it."""
        return self._connected(ServicePhase("connected"))

    def document_failed(self, error: DragomanError) -> None:
        attempt = self.phase.attempt + 1
        is_final = isinstance(error, _FINAL) and not self.was_ever_connected
        is_final = is_final or isinstance(error, NeedsAuth)
        at = None if is_final else self._next_attempt(attempt)
        state: State = "needs_auth" if isinstance(error, NeedsAuth) else "error"
        if self._served_since:
            state = "connected"
        self._served_since = False
        self._enter(ServicePhase(state, error.message, error.command_hint, attempt, at))

    def call_answered(self) -> bool:
        """Whether that made a connection of it."""
        self._served_since = True
        if self.is_connected:
            return False
        before = self.phase
        is_waiting = before.next_attempt is not None and before.attempt > 0
        phase = ServicePhase("connected", before.cause, before.hint, before.attempt, before.next_attempt)
        return self._connected(phase if is_waiting else ServicePhase("connected"))

    def call_failed(self, error: DragomanError, is_tried_again: bool) -> None:
        """The service could not be reached, or refused our credential."""
        self._served_since = False
        if isinstance(error, NeedsAuth):
            self._enter(ServicePhase("needs_auth", error.message, error.command_hint))
        elif self.phase.state not in ("error", "reconnecting"):
            at = self._next_attempt(1) if is_tried_again else None
            self._enter(ServicePhase("error", error.message, error.command_hint, 1, at))

    def left(self) -> None:
        self._enter(ServicePhase("disconnected"))

    def _next_attempt(self, failed: int) -> datetime | None:
        configuration = self._configuration
        delay = backoff(configuration.reconnect, failed) if configuration.auto_reconnect else None
        return None if delay is None else datetime.now(UTC) + timedelta(seconds=delay)

    def _connected(self, phase: ServicePhase) -> bool:
        before, is_new = self.phase, not self.is_connected
        self.reconnects += is_new and self.was_ever_connected
        self.was_ever_connected = True
        if is_new or (phase.cause, phase.attempt) != (before.cause, before.attempt):
            self._enter(phase)
        return is_new

    def _enter(self, phase: ServicePhase) -> None:
        before = self.phase
        since = before.since if before.state == phase.state and before.since else datetime.now(UTC)
        self.phase = ServicePhase(
            phase.state, phase.cause, phase.hint, phase.attempt, phase.next_attempt, since
        )
        self._on_change()


_LEAST_TTL = 1.0


@dataclass(frozen=True, slots=True)
class ServiceResources:
    """What all services share."""

    clients: HttpClients
    converter: Converter
    secrets: Secrets
    observer: ConnectionObserver


@dataclass(frozen=True, slots=True)
class _Ready:
    """An operation with everything that does not depend on the arguments."""

    definition: ToolDefinition
    operation: OperationPlan
    base: str
    addition: AddedCredentials
    exchange: Exchange


class OpenApiService:
    def __init__(self, connector: Connector, identity: str, parts: ServiceResources) -> None:
        self.connector = connector
        self.identity = identity
        self.usage = ConnectionLeases()
        self.takes_questions = False
        self._parts = parts
        self._reach = parts.clients.for_connector(connector)
        self._redactor = Redactor(SHORTEST_IN_RESULTS)
        self._bearer = watched(parts.secrets.bearer(connector, identity), self._redactor)
        self._configuration = connector.configuration  # with its secrets in their places once they are known
        self._loop = asyncio.get_running_loop()
        self._document: ServiceDocument | None = None
        self._credentials: ServiceCredentials | None = None
        self._ready: dict[str, _Ready] = {}
        self._standing = ServiceState(connector.configuration, self._tell_state)
        self._reading = asyncio.Lock()
        self._read_at: float | None = None
        self._used_at = self._loop.time()
        self._nudge = asyncio.Event()
        self._is_asleep = False

    # Seen from outside

    @property
    def is_connected(self) -> bool:
        return self._standing.is_connected

    def status(self) -> ConnectionStatus:
        phase = self._standing.phase
        return ConnectionStatus(
            connector_id=self.connector.id,
            slug=self.connector.slug,
            identity=self.identity,
            state=phase.state,
            cause=phase.cause,
            command_hint=phase.hint,
            attempt=phase.attempt,
            next_attempt=phase.next_attempt,
            since=phase.since,
            in_flight=self.usage.leases,
            reconnects=self._standing.reconnects,
        )

    def close(self) -> None:
        self.usage.close()
        self._nudge.set()

    async def open(self) -> None:
        await self.listing(must_be_new=not self.is_connected)

    # The document

    async def listing(self, *, must_be_new: bool) -> Listing:
        """What the document offers: read again, or as it was read last where that is good enough."""
        asked = self._loop.time()
        async with self._reading:
            # Whoever waited for another's look at it need not look again.
            is_new = self._read_at is not None and self._read_at >= asked
            was_read = self._document is not None and self._document.was_read
            if not was_read or (must_be_new and not is_new):
                await self._read()
            assert self._document is not None
            return await self._document.listing()

    async def _read(self) -> bool:
        started = self._loop.time()
        self._standing.trying()
        try:
            credentials = self._credentials or await self._reveal()
            if self._document is None:
                self._document = ServiceDocument(
                    self._configuration, self._reach, self._parts.converter, self._redactor
                )
            is_another = await self._read_document(self._document, credentials)
        except DragomanError as error:
            self._standing.document_failed(error)
            self._nudge.set()
            raise
        except asyncio.CancelledError:
            if not self._standing.is_connected:
                self._standing.left()
            raise
        self._read_at = self._loop.time()
        self._announce(self._standing.document_read(), started)
        self._nudge.set()
        return is_another

    async def _read_document(self, document: ServiceDocument, credentials: ServiceCredentials) -> bool:
        """With the token in force, and once more where that was refused and another could be had."""
        bearer = self._bearer
        if bearer is None or not is_address(document.location):
            return await document.read(credentials)
        try:
            sent = await bearer.headers()
            try:
                return await document.read(credentials.with_headers(sent))
            except NeedsAuth:
                if not await bearer.rejected(sent):
                    raise
            return await document.read(credentials.with_headers(await bearer.headers()))
        except WireFault as fault:
            raise fault.as_error(self.connector.slug, safe=True) from None

    def _announce(self, is_connection: bool, started: float) -> None:
        if is_connection:
            is_reconnect = self._standing.reconnects > 0
            seconds = self._loop.time() - started
            self._parts.observer.connected(self.connector, self.identity, seconds, is_reconnect)

    async def run(self) -> None:
        """Until it is closed: looks at the document when it is old and in use, or the service is down."""
        try:
            while not self.usage.is_closing:
                await self._rest()
                if self.usage.is_closing or not self._is_due():
                    continue
                try:
                    async with self._reading:
                        is_another = self._is_due() and await self._read()
                except DragomanError:
                    continue  # its state says why, and when it is tried again
                if is_another:
                    self._parts.observer.tools_changed(self.connector, self.identity)
        finally:
            self.usage.close()
            self._standing.left()

    def _is_due(self) -> bool:
        at = self._standing.phase.next_attempt
        if at is not None:
            return datetime.now(UTC) >= at
        if not self._standing.is_connected or self._read_at is None:
            return False
        return self._used_at > self._read_at and self._loop.time() - self._read_at >= self._ttl

    @property
    def _ttl(self) -> float:
        return max(_LEAST_TTL, self.connector.configuration.document_ttl)

    async def _rest(self) -> None:
        """Until the next look is due, or something happens that may make it due."""
        self._nudge.clear()
        delay: float | None = None
        if (at := self._standing.phase.next_attempt) is not None:
            delay = max(0.0, (at - datetime.now(UTC)).total_seconds())
        elif self._standing.is_connected and self._read_at is not None:
            left = self._read_at + self._ttl - self._loop.time()
            self._is_asleep = left <= 0
            delay = None if self._is_asleep else left
        try:
            async with asyncio.timeout(delay):
                await self._nudge.wait()
        except TimeoutError:
            return
        finally:
            self._is_asleep = False

    # Calls

    async def call(self, call: SourceCall) -> RawResult:
        """One request with its deadline, its retries and its honest outcome."""
        tries = RetrySchedule(self.connector.configuration.retry)
        try:
            return await self._try(call, tries)
        except DragomanError as error:
            error.attempts = max(1, tries.count)
            raise

    async def _try(self, call: SourceCall, tries: RetrySchedule) -> RawResult:
        safe = call.tool.definition.annotations.is_safe_to_repeat
        subject = f"{self.connector.slug}/{call.tool.original_name}"
        self._used_at = started = self._loop.time()
        if self._is_asleep:
            self._nudge.set()
        try:
            async with call.deadline.enforced():
                credentials = self._credentials or await self._reveal()
                ready = self._prepared(call.tool, credentials)
                request = build(ready.operation, call.arguments)
                if (listener := hearing()) is not None:  # before credentials are added
                    listener.sent(self._redactor.cleaned(told_request(ready.base, request)))
                ready.addition.add_to(request)
                while True:
                    tries.count += 1
                    try:
                        response = await self._sent(ready, request)
                        if listener is not None:
                            listener.received(self._redactor.cleaned(told_response(response)))
                        result = self._clean(result_of(response))
                        self._answered(started)
                        return result if tries.count == 1 else replace(result, attempts=tries.count)
                    except WireFault as fault:
                        if (pause := tries.pause_after(fault, safe, call.deadline.left)) is None:
                            raise self._failed(fault, subject, safe, ready) from None
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise WireFault("timeout", "no answer before the deadline").as_error(subject, safe) from None

    async def _sent(self, ready: _Ready, request: ServiceRequest) -> ServiceResponse:
        """One request; once more where its token was refused and another could be had."""
        bearer = self._bearer
        if bearer is None or ready.addition.is_withheld:
            return await ready.exchange.send(ready.base, request)
        credential = await bearer.headers()
        AddedCredentials(credential).add_to(request)
        try:
            return await ready.exchange.send(ready.base, request)
        except WireFault as fault:
            if fault.kind != "unauthorized" or not await bearer.rejected(credential):
                raise
        AddedCredentials(await bearer.headers()).add_to(request)
        return await ready.exchange.send(ready.base, request)

    def _answered(self, started: float) -> None:
        if not self.usage.is_closing:
            self._announce(self._standing.call_answered(), started)

    def _failed(self, fault: WireFault, subject: str, safe: bool, ready: _Ready) -> DragomanError:
        fault.message = self._redactor.clean_excerpt(fault.message)
        error = fault.as_error(subject, safe)
        if fault.kind == "unauthorized" and ready.addition.is_withheld:
            return NeedsAuth(
                error.message,
                hint=f"the credential was not sent: the document leads to {ready.base}, which is not"
                " where it is from; set the connector's server to that address if it is meant",
            )
        if isinstance(error, NeedsAuth):
            error.command_hint = credential_hint(self.connector)
        if self.usage.is_closing:
            return error
        if fault.kind in ("refused", "unauthorized"):
            document = self._document
            self._standing.call_failed(error, document is None or is_address(document.location))
            self._nudge.set()
        elif fault.kind in ("server_error", "rate_limited"):
            self._answered(self._loop.time())
        return error

    def _prepared(self, tool: Tool, credentials: ServiceCredentials) -> _Ready:
        ready = self._ready.get(tool.original_name)
        if ready is not None and ready.definition is tool.definition:
            return ready
        plan = (tool.definition.meta or {}).get(META_KEY)
        if plan is None:
            raise ProtocolFault(
                f"{tool.name} was listed without a plan of its request", hint="refresh the connector"
            )
        operation = OperationPlan.from_meta(plan)
        configuration = self._configuration
        server = expanded(configuration.server, self._reach.environment) if configuration.server else None
        place = resolved(operation.server, operation.base, server)
        if not place or not is_address(place) or "{" in place:
            raise InvalidConfig(
                f"the document does not say where {operation.method} {operation.path} is",
                hint="set the connector's server, for example http://127.0.0.1:8000",
            )
        base = address(place)
        check_target(base, credentials.hosts)
        proxy = proxy_for(place) if self._reach.is_trusted else None
        exchange = Exchange(self._reach.client, configuration.max_message_bytes, proxy)
        addition = credentials.addition(operation, base)
        ready = _Ready(tool.definition, operation, str(base).rstrip("/"), addition, exchange)
        self._ready[tool.original_name] = ready
        return ready

    async def _reveal(self) -> ServiceCredentials:
        secrets = await self._parts.secrets.reveal(self.connector, self.identity)
        check_secrets(self.connector, secrets)
        environment = self._reach.environment
        self._redactor.register(brought_values(self.connector, secrets, environment))
        self._configuration = self.connector.configuration.unmasked(secrets)
        self._credentials = ServiceCredentials.of(self._configuration, secrets, environment)
        return self._credentials

    def _clean(self, result: RawResult) -> RawResult:
        """A service that gives back what it was brought shows it to nobody."""
        if result.is_error:  # its words may have been cut
            (block,) = result.content
            text = self._redactor.clean_excerpt(block["text"])
            return replace(result, content=({**block, "text": text},))
        return replace(
            result,
            content=tuple(map(self._redactor.clean_message, result.content)),
            structured=self._redactor.clean_message(result.structured),
        )

    def _tell_state(self) -> None:
        self._parts.observer.state_changed(self.connector, self.status())


class OpenApiServices(LinkPool[OpenApiService]):
    """All OpenAPI services: the source of what documents describe. Owns the converter that they share."""

    calls_need_owner = False
    is_ready = False

    def __init__(self, secrets: Secrets, observer: ConnectionObserver, clients: HttpClients) -> None:
        super().__init__(observer)
        self._secrets = secrets
        self._clients = clients

    async def enter_parts(self, stack: AsyncExitStack) -> None:
        converter = await stack.enter_async_context(Converter())
        self._parts = ServiceResources(self._clients, converter, self._secrets, self._observer)

    async def make_ready(self) -> None:
        await self._clients.make_ready()
        self.is_ready = True

    def make_link(self, key: Key, connector: Connector, can_ask: bool) -> OpenApiService:
        return OpenApiService(connector, key[1], self._parts)

    def listed(self, link: OpenApiService, *, must_be_new: bool) -> Awaitable[Listing]:
        return link.listing(must_be_new=must_be_new)
