"""Connections of many nodes: one that has state is held by one node, and whoever wants it asks that node.

Wraps `Connections`, which holds what this node holds; what has no state is reached from anywhere. A request
that may be repeated is, wherever its holder went. One that may not is sent to one holder, once: where nobody
can say whether it was made, it is `uncertain`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from dragoman.background_tasks import BackgroundTasks
from dragoman.cluster.places import NodeReply, NodeRequest, NotHeld, Place, Places, boot_clock, preferred
from dragoman.connections.deadline import Deadline
from dragoman.connections.holder import UNKNOWN_COUNTS, CallGate, Holder
from dragoman.connections.link_pool import Key, key_of
from dragoman.connections.placed_messages import (
    Target,
    dump_call,
    dump_notice,
    dump_question,
    dump_status,
    dump_target,
    load_error,
    load_listing,
    load_notice,
    load_result,
    load_status,
)
from dragoman.connections.pool import Connections
from dragoman.connections.server_guard import open_guard
from dragoman.connections.source import (
    ConnectionObserver,
    ConnectionStatus,
    Listing,
    ServerNotice,
    ServerRequest,
    SourceCall,
    SourceChannel,
)
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Connector
from dragoman.errors import (
    ClusterUnavailable,
    Conflict,
    ConnectTimeout,
    DragomanError,
    InputRequired,
    NotFound,
    Uncertain,
)
from dragoman.scope import Caller
from dragoman.tool import AdmittedCall, RawResult

_FIRST_POLL, _LATER_POLLS = 0.25, 1.0  # seconds of silence until who holds it is asked how a request is
_REPLY = 0.25  # seconds for the answer to that: then it is looked whether the node still has its lease
_PAUSE = 0.05  # seconds before a request that was not made is sent again
_SOON_ASKED = 5.0
_BALANCE_EVERY = 5.0
_LONG_IDLE = 300.0  # seconds that a connection must be unused before it is moved to another node
Result = TypeVar("Result")


def has_state(connector: Connector) -> bool:
    """Whether it matters which process is connected. HTTP of the 2026 era has no session."""
    configuration = connector.configuration
    return connector.kind == "mcp" and (configuration.wire != "http" or connector.era != "2026")


def has_one_place(connector: Connector) -> bool:
    """Whether one node makes all its calls: with a state, and one connection for everybody who may use it."""
    return (
        has_state(connector) and connector.configuration.isolation == "shared" and connector.workspace != ""
    )


class AnnouncingObserver:
    """Fills `ConnectionObserver`: other nodes hear how connections are that this one holds."""

    def __init__(self, inner: ConnectionObserver, places: Places) -> None:
        self._inner = inner
        self._places = places
        self.tools_changed = inner.tools_changed
        self.connected = inner.connected
        self.reused = inner.reused

    def state_changed(self, connector: Connector, status: ConnectionStatus) -> None:
        self._inner.state_changed(connector, status)
        if has_state(connector):
            self._places.say("status", dump_status(status))


@dataclass(frozen=True, kw_only=True)
class _Errand(Generic[Result]):
    """Something to be done by whoever holds the connection. `here` does it on this node."""

    kind: str
    subject: str
    key: Key
    here: Callable[[], Awaitable[Result]]
    body: Callable[[], Mapping[str, Any]]
    read: Callable[[Any], Result]
    deadline: Deadline
    is_safe: bool = True
    channel: SourceChannel | None = None
    admitted: Callable[[], AdmittedCall] | None = None
    on_told: Callable[[str], None] = field(default=lambda kind: None)

    @property
    def may_be_repeated(self) -> bool:
        """What its server works on as a task is followed by whoever holds the connection next."""
        return self.is_safe or (self.channel is not None and self.channel.task is not None)


class _NotMade(Exception):
    """It was not made, and that is sure. `doubted` is the place where it was to be made."""

    def __init__(self, doubted: Place | None = None) -> None:
        super().__init__()
        self.doubted = doubted


class _HolderGone(Exception):
    """Whether it was made, nobody can say."""


class PlacedConnections:
    """Fills `Source` and all that `Connections` is, over the nodes of a cluster."""

    def __init__(
        self,
        connections: Connections,
        places: Places,
        observer: ConnectionObserver,
        connector_of: Callable[[str], Connector | None],
        gate_of: Callable[[Connector], CallGate | None],
        request_timeout: float,
    ) -> None:
        """`observer` is told of connections that other nodes hold."""
        self._inner = connections
        self._places = places
        self._observer = observer
        self._connector_of = connector_of
        self._request_timeout = request_timeout
        self._tasks = BackgroundTasks()
        self._holder = Holder(connections, places, self._tasks, connector_of, gate_of)
        self._elsewhere: dict[Key, ConnectionStatus] = {}
        self.retire = connections.retire  # every node hears of the change, and closes what it holds
        self.close_for_user = connections.close_for_user
        self.list_tools_again = connections.list_tools_again
        self.statuses = connections.statuses
        self.listening = connections.listening

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["PlacedConnections"]:
        """Opens `Connections` as well. While the block runs, others can ask this node for what it holds."""
        inner, places = self._inner, self._places
        async with AsyncExitStack() as stack:
            guard = await stack.enter_async_context(open_guard())
            await stack.enter_async_context(self._tasks)
            places.lease.watch(guard.lease)
            inner.on_server = guard.server
            inner.holds = self._holds
            inner.on_forgotten = self._forgotten
            places.on_lost(self._cut)
            stack.push_async_callback(self._holder.finish)
            await stack.enter_async_context(places.answering(self._holder.take))
            stack.enter_context(places.hearing(self._hear))
            stack.enter_context(inner.listening(self._tell_notice))
            for work, name in (
                (self._holder.end_orphans(), "end what nobody waits for"),
                (self._balance(), "balance connections over nodes"),
            ):
                self._tasks.start(work, name)
            places.say("hello", None)
            # Left first: while it closes, calls under way are answered and its places are let go.
            await stack.enter_async_context(inner)
            stack.push_async_callback(places.stop_taking)
            yield self

    @property
    def has_people(self) -> bool:
        return self._inner.has_people

    @has_people.setter
    def has_people(self, value: bool) -> None:
        self._inner.has_people = value

    # What a source does

    async def call(self, call: SourceCall) -> RawResult:
        connector = call.connector
        if not has_state(connector):
            return await self._inner.call(call)
        key = key_of(connector, call.caller)
        return await self._done(
            _Errand(
                kind="call",
                subject=f"{connector.slug}/{call.tool.original_name}",
                key=key,
                here=lambda: self._inner.call(call),
                body=lambda: dump_call(call, key[1]),
                read=load_result,
                deadline=call.deadline,
                is_safe=call.tool.definition.annotations.is_safe_to_repeat,
                channel=call.channel,
                admitted=lambda: AdmittedCall.of(call.tool, call.arguments),
            )
        )

    async def ask(self, question: ServerRequest) -> Mapping[str, Any]:
        connector = question.connector
        if not has_state(connector):
            return await self._inner.ask(question)
        key = key_of(connector, question.caller)
        return await self._done(
            _Errand(
                kind="ask",
                subject=f"{connector.slug}: {question.method}",
                key=key,
                here=lambda: self._inner.ask(question),
                body=lambda: dump_question(question, key[1]),
                read=lambda result: result,
                deadline=question.deadline,
                channel=question.channel,
            )
        )

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        return await self._steered(
            "list", connector, caller, lambda: self._inner.list_tools(connector, caller), load_listing
        )

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        return await self._steered(
            "connect", connector, caller, lambda: self._inner.connect(connector, caller), load_status
        )

    async def disconnect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        return await self._steered(
            "disconnect", connector, caller, lambda: self._inner.disconnect(connector, caller), load_status
        )

    async def _steered(
        self,
        kind: str,
        connector: Connector,
        caller: Caller,
        here: Callable[[], Awaitable[Result]],
        read: Callable[[Any], Result],
    ) -> Result:
        if not has_state(connector):
            return await here()
        key = key_of(connector, caller)
        wait = connector.connect_limit + (connector.configuration.request_timeout or self._request_timeout)
        return await self._done(
            _Errand(
                kind=kind,
                subject=f"{connector.slug}: {kind}",
                key=key,
                here=here,
                body=lambda: dump_target(connector, key[1]),
                read=read,
                deadline=Deadline(wait),
            )
        )

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        key = key_of(connector, caller)
        if not self._inner.has_link(key) and connector.enabled and (known := self._elsewhere.get(key)):
            return known
        return self._here(self._inner.status(connector, caller))

    def known_statuses(self) -> list[ConnectionStatus]:
        return [*map(self._here, self._inner.statuses()), *self._elsewhere.values()]

    def _here(self, status: ConnectionStatus) -> ConnectionStatus:
        is_placed = self._places.holds((status.connector_id, status.identity))
        return replace(status, node=self._places.node) if is_placed else status

    # Resources

    async def watch(self, connector: Connector, caller: Caller, uri: str) -> Callable[[], None]:
        if not has_state(connector):
            return await self._inner.watch(connector, caller, uri)
        asked = asyncio.Event()
        watching = self._tasks.start(
            self._watch(connector, caller, uri, asked), f"watch for {connector.slug}"
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(_SOON_ASKED):
                await asked.wait()

        def end() -> None:
            watching.cancel()

        return end

    async def _watch(self, connector: Connector, caller: Caller, uri: str, asked: asyncio.Event) -> None:
        """Whoever holds the connection, now and later, is asked to watch. What it missed is told as well."""
        key = key_of(connector, caller)

        def told(kind: str) -> None:
            if kind == "watched" and asked.is_set():
                self._inner.tell_notice(connector, key[1], ServerNotice("resource", uri))
            elif kind == "watched":
                asked.set()

        async def here() -> None:
            end = await self._inner.watch(connector, caller, uri)
            try:
                told("watched")
                await self._holder.until_lost(key)
            finally:
                end()

        while True:
            errand = _Errand[None](
                kind="watch",
                subject=f"{connector.slug}: {uri}",
                key=key,
                here=here,
                body=lambda: {**dump_target(connector, key[1]), "uri": uri},
                read=lambda _: None,
                deadline=Deadline(365 * 86_400.0),
                on_told=told,
            )
            with suppress(DragomanError):
                await self._done(errand)
            await asyncio.sleep(1.0)

    # Places

    async def places(self) -> list[Place]:
        return [*await self._places.list()]

    async def move(self, key: Key, connector: Connector, to: str | None) -> None:
        """Has another node hold it: `to`, or whoever should. `Conflict` while it is in use."""
        if to is not None and to not in await self._places.living():
            raise NotFound(
                f"no node {to!r} holds connections", hint="dragoman cluster status shows the nodes"
            )
        await self._done(
            _Errand[None](
                kind="move",
                subject=f"move {connector.slug}",
                key=key,
                here=lambda: self._holder.move(key, to),
                body=lambda: {**dump_target(connector, key[1]), "to": to},
                read=lambda _: None,
                deadline=Deadline(30.0),
            )
        )

    def _holds(self, connector: Connector, key: Key) -> bool:
        return not has_state(connector) or self._places.holds(key)

    async def _cut(self) -> None:
        """The lease is over: whatever has state is closed at once."""
        await self._inner.cut(has_state)

    def _forgotten(self, key: Key) -> None:
        self._tasks.start(self._let_go(key), "let go of a place")

    async def _let_go(self, key: Key) -> None:
        if not self._inner.is_wanted(key) and not self._holder.is_moving(key):
            with suppress(ClusterUnavailable):
                await self._places.let_go(key)

    async def _balance(self) -> None:
        """When nodes come, what was not used for long goes where it would be placed now."""
        while True:
            await asyncio.sleep(_BALANCE_EVERY)
            living = await self._places.living()
            present = {*await self._places.present()}
            for key in [key for key, one in self._elsewhere.items() if one.node not in present]:
                del self._elsewhere[key]
            for key, seconds in self._inner.idle_links().items():
                if seconds < _LONG_IDLE or not self._places.holds(key) or self._places.is_pinned(key):
                    continue
                if living and preferred(key, living)[0] != self._places.node:
                    with suppress(Conflict, ClusterUnavailable):  # in use again, or NATS is away
                        await self._holder.move(key, None, patience=0)

    # What other nodes say

    def _tell_notice(self, connector: Connector, identity: str, notice: ServerNotice) -> None:
        if self._places.holds((connector.id, identity)):
            self._places.say("notice", dump_notice(connector, identity, notice))

    def _hear(self, node: str, kind: str, body: Any) -> None:
        with suppress(KeyError, TypeError, ValueError):  # of a version that says it otherwise
            if kind == "hello":
                for status in self._inner.statuses():
                    if (one := self._connector_of(status.connector_id)) is not None and has_state(one):
                        self._places.say("status", dump_status(status))
            elif kind == "status":
                self._hear_status(replace(load_status(body), node=node))
            elif kind == "notice":
                target, notice = Target.of(body), load_notice(body)
                if (connector := self._connector_of(target.connector)) is not None:
                    self._inner.tell_notice(connector, target.identity, notice)

    def _hear_status(self, status: ConnectionStatus) -> None:
        key = (status.connector_id, status.identity)
        connector = self._connector_of(status.connector_id)
        if connector is None or self._inner.has_link(key):
            return
        if status.state == "disconnected":
            self._elsewhere.pop(key, None)
        else:
            self._elsewhere[key] = status
        self._observer.state_changed(connector, status)

    # Asking who holds it

    async def _done(self, errand: _Errand[Result]) -> Result:
        """Wherever it must be done."""
        doubted: Place | None = None
        while True:
            place = await self._located(errand, doubted)
            try:
                if place.node == self._places.node:
                    return await errand.here()
                return await self._asked(place, errand)
            except NotHeld:
                doubted = place
            except _NotMade as error:
                doubted = error.doubted
            except _HolderGone:
                if not errand.may_be_repeated:
                    raise Uncertain(
                        f"{errand.subject} may or may not have been executed: the node that held it is gone",
                        hint="look at the server before you repeat it: it is not known to be safe to repeat",
                        cause="lost",
                    ) from None
                doubted = place
            await asyncio.sleep(_PAUSE)

    async def _located(self, errand: _Errand[Any], doubted: Place | None) -> Place:
        try:
            async with errand.deadline.enforced():
                return await self._places.locate(errand.key, doubted)
        except TimeoutError:
            raise ConnectTimeout(
                f"{errand.subject}: no node took the connection in time",
                hint="dragoman cluster status shows the nodes",
            ) from None

    async def _asked(self, place: Place, errand: _Errand[Result]) -> Result:
        asking = _Asking(self._places, place, errand, self._tasks)
        try:
            with self._places.ask(place.node) as request:
                try:
                    async with errand.deadline.enforced():
                        return await asking.outcome(request)
                finally:
                    asking.end()
                    if asking.has_left and not asking.is_over:
                        self._tasks.start(_cancel(request, errand.channel), "cancel at another node")
        except TimeoutError:
            fault = WireFault("timeout", "no answer before the deadline")
            raise fault.as_error(errand.subject, errand.is_safe) from None


class _Asking(Generic[Result]):
    """One errand that another node does."""

    def __init__(self, places: Places, place: Place, errand: _Errand[Result], tasks: BackgroundTasks) -> None:
        self._places = places
        self._tasks = tasks
        self._place = place
        self._errand = errand
        self._answers: dict[int, dict[str, Any] | None] = {}  # None while somebody is asked
        self._asked: list[asyncio.Task[None]] = []
        self.has_left = False
        self.is_over = False

    def end(self) -> None:
        for task in self._asked:
            task.cancel()

    async def outcome(self, request: NodeRequest) -> Result:
        try:
            first = await request.send(self._errand.kind, self._errand.body())
        except ConnectionError:
            raise _NotMade(self._place) from None
        self.has_left, sent_at = True, boot_clock()
        silences, patience = 0, _FIRST_POLL
        while True:
            told = await request.receive(_REPLY if silences else patience)
            if told is not None and told.kind == "nobody" and told.number == first:
                self.is_over = True
                raise _NotMade(self._place)
            if told is not None and told.kind == "unknown" and not self._counts(sent_at):
                raise _HolderGone
            if told is not None and told.kind != "nobody":
                silences, patience = 0, _LATER_POLLS
                if (found := await self._take(told, request)) is not None:
                    return found[0]
                continue
            silences += 1
            if silences == 1:
                self._tasks.start(self._places.suspect(self._place), "look at a lease")
            if silences > 1 and await self._has_moved():
                return await self._last_word(request)
            with suppress(ConnectionError):
                await request.send("poll")

    def _counts(self, sent_at: float) -> bool:
        """Whether an id that its holder does not know was never seen there."""
        return self._errand.may_be_repeated or boot_clock() - sent_at < UNKNOWN_COUNTS

    async def _has_moved(self) -> bool:
        """Waits until it is clear: its holder lives, or its lease is over and somebody else holds it."""
        try:
            return await self._places.locate(self._place.key, self._place) != self._place
        except ClusterUnavailable:
            # For so long nobody renewed a lease: what its holder held is closed.
            if self._errand.may_be_repeated:
                raise
            return True

    async def _last_word(self, request: NodeRequest) -> Result:
        """What came while it was found out that its holder is gone: said before the lease was over."""
        while (told := await request.receive(0)) is not None:
            if told.kind in ("done", "failed") and (found := await self._take(told, request)) is not None:
                return found[0]
        raise _HolderGone

    async def _take(self, told: NodeReply, request: NodeRequest) -> tuple[Result] | None:
        """The result, once it is there; raises what it failed with."""
        body = told.body
        match told.kind:
            case "done" | "failed":
                self.is_over = True
                self._pass_on(body["notes"])
                if told.kind == "failed":
                    raise load_error(body["value"])
                return (self._errand.read(body["value"]),)
            case "moved":
                self.is_over = True
                raise _NotMade(self._place)
            case "unknown":
                self.is_over = True
                raise _NotMade
            case "cancelled" | "forgotten":
                self.is_over = True
                raise _HolderGone
            case "progress":
                if self._errand.channel is not None:
                    await self._errand.channel.progress(*body)
            case "task":
                if self._errand.channel is not None:
                    await self._errand.channel.keep_task(str(body))
            case "question":
                await self._answer(body, request)
            case kind:
                self._errand.on_told(kind)
        return None

    def _pass_on(self, notes: Mapping[str, Any]) -> None:
        channel = self._errand.channel
        if channel is None:
            return
        for params, reason in notes.get("declined", ()):
            channel.decline(params, reason)
        if (asked := notes.get("pending")) is not None:
            channel.note_pending(asked)
        if (refused := notes.get("refused")) is not None:
            channel.note_refused(*refused)
        if notes.get("admitted") and self._errand.admitted is not None:
            channel.note_admitted(self._errand.admitted())

    async def _answer(self, question: Mapping[str, Any], request: NodeRequest) -> None:
        """Asked again, the same answer is given again."""
        number = int(question["number"])
        if number not in self._answers:
            self._answers[number] = None
            self._asked.append(
                self._tasks.start(self._ask(number, question, request), "ask for another node")
            )
        elif answer := self._answers[number]:
            await self._send_answer(answer, request)

    async def _ask(self, number: int, question: Mapping[str, Any], request: NodeRequest) -> None:
        answer = self._answers[number] = {"number": number, **await self._found_answer(question)}
        await self._send_answer(answer, request)

    async def _found_answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._errand.channel
        if channel is None:
            return {"refused": "nobody can be asked here"}
        try:
            return {"answer": await channel.ask(str(question["method"]), question["params"])}
        except InputRequired as error:
            return {"refused": error.message}

    async def _send_answer(self, answer: dict[str, Any], request: NodeRequest) -> None:
        with suppress(ConnectionError):
            await request.send("answer", answer)


async def _cancel(request: NodeRequest, channel: SourceChannel | None) -> None:
    """Says as well whether the call is over for good, or will be entered again."""
    is_over = channel is None or not channel.is_left
    with suppress(ConnectionError):
        await request.send("cancel", {"over": is_over})
