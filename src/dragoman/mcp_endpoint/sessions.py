"""Sessions of the 2025 era: what Dragoman remembers of a client between its requests.

A session belongs to the caller and the address that opened it; for anybody else it does not exist. Its facts
are in the store, so that each request may come to another process; what runs for it is in the process that
was asked, which hears of answers and cancellations that came to another. Nothing else runs for a session: it
goes when its client ends it, when it was idle for long, or when newer ones need room.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from secrets import token_hex, token_urlsafe
from time import time
from typing import Any, cast

from mcp_types import INVALID_PARAMS, RequestId

from dragoman.hub.door_clients import SESSION_IDLE, DoorClients
from dragoman.mcp_endpoint.messages import (
    Params,
    RpcError,
    RpcResponse,
    notification_message,
    request_message,
)
from dragoman.mcp_endpoint.request_context import Watch
from dragoman.mcp_endpoint.streams import StandaloneStream
from dragoman.mcp_endpoint.views import EndpointTarget
from dragoman.scope import Caller
from dragoman.store.records import ClientSession
from dragoman.web.encoding import encode

IDLE = SESSION_IDLE.total_seconds()
MOST = 2_000
MOST_PER_USER = 200
MOST_WATCHED = 100
CANCELLED = -32800
_LARGEST_CAPABILITIES = 16 * 1024
_OURS = "dragoman-"


class EndpointSession:
    """A session as this process has it. `told` are the lists that the client knows, or was told to read
    again; `watched` the resources that it wants to hear of, each with what ends the watch. They are watched
    where its stream is, or was last.
    """

    def __init__(
        self,
        session_id: str,
        facts: ClientSession,
        caller: Caller,
        target: EndpointTarget,
        clients: DoorClients,
    ) -> None:
        self.id = session_id
        self.key = facts.id
        self.caller = caller
        self.target = target
        self.capabilities = facts.capabilities
        self.used_at = self.noted_at = facts.used_at.timestamp()
        self.stream: StandaloneStream | None = None
        self.told = dict(facts.lists)
        self.watched: dict[str, Callable[[], None]] = {}
        self.rewatch: Callable[[Iterable[str]], None] | None = None  # of the stream
        self._clients = clients
        self._stream_name = facts.stream
        self._lists = dict(facts.lists)  # as the store has them
        self._running: dict[RequestId, asyncio.Task[Any]] = {}
        self._cancelled: set[RequestId] = set()

    @property
    def is_busy(self) -> bool:
        return self.stream is not None or bool(self._running)

    # Requests of the client, which it may cancel at any process

    @contextmanager
    def running(self, request_id: RequestId) -> Generator[None]:
        """While this lasts, the client may cancel the request; it then ends in an error of its own."""
        task = asyncio.current_task()
        assert task is not None
        self._running[request_id] = task
        words = (self.key, _word(request_id))
        forget = self._clients.expect("cancel", words, lambda _: self._cancel(request_id))
        try:
            yield
        except asyncio.CancelledError:
            if request_id not in self._cancelled or task.uncancel():
                raise
            raise RpcError(CANCELLED, "Request cancelled") from None
        finally:
            forget()
            self._cancelled.discard(request_id)
            self._running.pop(request_id, None)

    async def cancel(self, request_id: Any) -> None:
        """In whichever process it runs."""
        if isinstance(request_id, int | str):
            await self._clients.send("cancel", (self.key, _word(request_id)), b"", self.caller)

    def _cancel(self, request_id: RequestId) -> None:
        if task := self._running.get(request_id):
            self._cancelled.add(request_id)
            task.cancel()

    # Requests to the client, which it may answer at any process

    async def ask(self, send: Callable[[bytes], Any], method: str, params: Params) -> Params:
        """One request to the client, and its answer; `send` puts it on a stream that the client reads."""
        request_id = f"{_OURS}{token_hex(8)}"
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def received(message: bytes) -> None:
            if not answer.done():
                answer.set_result(message)

        forget = self._clients.expect("answer", (self.key, request_id), received)
        try:
            await send(request_message(request_id, method, params))
            result, error = cast("tuple[Params | None, Params | None]", json.loads(await answer))
        except asyncio.CancelledError:
            # Nobody waits for the answer any more: its person need not be asked longer.
            await send(notification_message("notifications/cancelled", {"requestId": request_id}))
            raise
        finally:
            forget()
        if result is None:
            raise RpcError(-32000, str((error or {}).get("message", "the client refused"))[:500])
        return result

    async def take(self, answer: RpcResponse) -> None:
        """To whichever process asked."""
        if isinstance(answer.id, str) and answer.id.startswith(_OURS):
            message = encode([answer.result, answer.error])
            await self._clients.send("answer", (self.key, answer.id), message, self.caller)

    # What the client knows, and wants to hear of

    async def knows(self, lists: dict[str, str]) -> None:
        """It was just given these lists."""
        self.told |= lists
        if not lists.items() <= self._lists.items():
            self._lists |= lists
            await self._change(lambda one: replace(one, lists={**one.lists, **lists}))

    async def opens(self, stream: StandaloneStream, name: str) -> ClientSession | None:
        """The client hears of everything over this stream from now on; what it was before. None when it is
        gone.
        """
        if self.stream is not None:
            self.stream.end()  # the client came back before its old stream was seen to be gone
        before: list[ClientSession] = []

        def opened(one: ClientSession) -> ClientSession:
            before.append(one)
            return replace(one, stream=name)

        if await self._change(opened, tells=True) is None:
            return None
        self.stream, self._stream_name = stream, name
        self.told = dict(before[-1].lists)
        return before[-1]

    async def tell(self, method: str, params: Params) -> None:
        """A notification, over the client's standing stream in whichever process that is."""
        message = notification_message(method, params)
        if self.stream is not None:
            await self.stream.tell(message)
        else:
            self._clients.streams.push(self._news, message)

    @asynccontextmanager
    async def told_elsewhere(self, heard: Callable[[bytes], None]) -> AsyncGenerator[None]:
        """While this lasts, `heard` gets the notifications for which another process has no stream."""
        async with self._clients.streams.follow(self._news, heard):
            yield

    @property
    def _news(self) -> str:
        return f"session-{self.key}"

    async def subscribe(self, uri: str, watch: Watch) -> None:
        """`watch` raises where the server does not tell."""
        if uri in self.watched:
            return
        end = await watch(uri)
        try:
            changed = await self._change(lambda one: _watching(one, uri), tells=True)
        except BaseException:
            end()
            raise
        if changed is None or changed.stream != self._stream_name or uri in self.watched:
            end()  # who has the stream has heard of it
        else:
            self.watched[uri] = end

    async def unsubscribe(self, uri: str) -> None:
        if end := self.watched.pop(uri, None):
            end()
        await self._change(
            lambda one: replace(one, watched=[known for known in one.watched if known != uri]), tells=True
        )

    def read_again(self, facts: ClientSession) -> None:
        """Another process changed it."""
        if facts.stream != self._stream_name:
            self._end_stream()  # the client listens there now
        elif self.rewatch is not None:
            self.rewatch(facts.watched)

    def end(self) -> None:
        """Whatever the client still waits for is let go."""
        for request_id in [*self._running]:
            self._cancel(request_id)
        self._end_stream()

    def _end_stream(self) -> None:
        if self.stream is not None:
            self.stream.end()
        while self.watched:
            self.watched.popitem()[1]()

    async def _change(
        self, change: Callable[[ClientSession], ClientSession], *, tells: bool = False
    ) -> ClientSession | None:
        return await self._clients.rows.change_session(self.key, change, tells=tells)


class EndpointSessions:
    """`most` are those in memory: one that has no room there is read again when its client comes."""

    def __init__(
        self,
        *,
        idle: float = IDLE,
        most: int = MOST,
        most_per_user: int = MOST_PER_USER,
        clock: Callable[[], float] = time,
    ) -> None:
        self._idle = idle
        self._most = most
        self._most_per_user = most_per_user
        self._clock = clock
        self._clients: DoorClients | None = None
        self._sessions: dict[str, EndpointSession] = {}  # by key, the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    async def open(
        self, caller: Caller, target: EndpointTarget, params: Params, clients: DoorClients
    ) -> EndpointSession | None:
        """None when there is no room and every session is busy."""
        if not self._has_room():
            return None
        session_id = token_urlsafe(24)
        facts = ClientSession(
            id=_key(session_id),
            workspace=caller.workspace,
            user=caller.user,
            caller=caller.fingerprint,
            target=str(target),
            capabilities=_capabilities(params),
            used_at=datetime.fromtimestamp(self._clock(), UTC),
        )
        await self._note_used(caller, clients)
        busy = [one.key for one in self._sessions.values() if one.is_busy]
        gone = await clients.rows.open_session(facts, self._most_per_user, busy)
        if gone is None:
            return None
        for key in gone:
            self._forget(key)
        return self._put(EndpointSession(session_id, facts, caller, target, clients), clients)

    async def find(
        self, session_id: str, caller: Caller, target: EndpointTarget, clients: DoorClients
    ) -> EndpointSession | None:
        key, now = _key(session_id), self._clock()
        session = self._sessions.get(key)
        # Another process tells of a session that ended there, but a request may be sooner.
        if (
            session is None
            or clients.has_others
            or (now - session.used_at > self._idle and not session.is_busy)
        ):
            session = await self._read(session_id, caller, target, clients)
        if session is None or session.caller != caller or session.target != target:
            return None
        session.used_at = now
        self._sessions[key] = self._sessions.pop(key, session)
        return session

    async def close(self, session: EndpointSession, clients: DoorClients) -> None:
        """Its client has ended it, for every process."""
        self._forget(session.key)
        await clients.rows.remove_session(session.key)

    async def _read(
        self, session_id: str, caller: Caller, target: EndpointTarget, clients: DoorClients
    ) -> EndpointSession | None:
        """As the store has it: it was opened, used last or ended in another process."""
        key = _key(session_id)
        facts = await clients.rows.find_session(key)
        if facts is None:
            self._forget(key)
            return None
        if (facts.caller, facts.target) != (caller.fingerprint, str(target)):
            return None
        known = self._sessions.get(key)
        used_at = max(facts.used_at.timestamp(), known.used_at if known else 0.0)
        if self._clock() - used_at > self._idle:
            self._forget(key)
            await clients.rows.remove_session(key)
            return None
        if known is not None:
            return known
        if not self._has_room():
            return None
        return self._put(EndpointSession(session_id, facts, caller, target, clients), clients)

    def _put(self, session: EndpointSession, clients: DoorClients) -> EndpointSession:
        if self._clients is None:
            self._clients = clients
            clients.attach(self._told, self._note_all_used)
        return self._sessions.setdefault(session.key, session)

    def _has_room(self) -> bool:
        if len(self._sessions) >= self._most:
            oldest = next((one for one in self._sessions.values() if not one.is_busy), None)
            if oldest is None:
                return False
            self._forget(oldest.key)
        return True

    def _forget(self, key: str) -> None:
        if session := self._sessions.pop(key, None):
            session.end()

    async def _told(self, key: str) -> None:
        """Another process changed or ended it."""
        if (session := self._sessions.get(key)) is not None and self._clients is not None:
            facts = await self._clients.rows.find_session(key)
            if facts is None:
                self._forget(key)
            else:
                session.read_again(facts)

    async def _note_all_used(self) -> None:
        if self._clients is not None:
            await self._note_used(None, self._clients)

    async def _note_used(self, caller: Caller | None, clients: DoorClients) -> None:
        """Writes which were used since this was last written, of one user or of all."""
        now = self._clock()
        used: dict[str, datetime] = {}
        for session in self._sessions.values():
            if caller is not None and _user(session.caller) != _user(caller):
                continue
            at = now if session.is_busy else session.used_at
            if at > session.noted_at:
                session.noted_at = at
                used[session.key] = datetime.fromtimestamp(at, UTC)
        await clients.rows.use_sessions(used)


def _key(session_id: str) -> str:
    return blake2b(session_id.encode(), digest_size=20).hexdigest()


def _word(request_id: RequestId) -> str:
    return json.dumps(request_id)[:200]


def _user(caller: Caller) -> tuple[str, str]:
    return caller.workspace, caller.user


def _capabilities(params: Params) -> dict[str, Any]:
    declared = params.get("capabilities")
    capabilities = cast("dict[str, Any]", declared) if isinstance(declared, dict) else {}
    if len(encode(capabilities)) > _LARGEST_CAPABILITIES:
        raise RpcError(INVALID_PARAMS, "Invalid params: the capabilities are too large")
    return capabilities


def _watching(session: ClientSession, uri: str) -> ClientSession:
    if uri in session.watched:
        return session
    if len(session.watched) >= MOST_WATCHED:
        raise RpcError(INVALID_PARAMS, f"A client may watch {MOST_WATCHED} resources, and no more")
    return replace(session, watched=[*session.watched, uri])
