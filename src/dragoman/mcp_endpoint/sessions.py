"""Sessions of the 2025 era: what Dragoman remembers of a client between its requests.

A session belongs to the caller and the address that opened it; for anybody else it does not exist.
Nothing runs for it: it goes when its client ends it, when it was idle for long, or when newer ones need room.
"""

import asyncio
import itertools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from secrets import token_urlsafe
from time import monotonic
from typing import Any

from mcp_types import RequestId

from dragoman.mcp_endpoint.messages import Params, RpcError, RpcResponse, request_message
from dragoman.mcp_endpoint.request_context import Watched
from dragoman.mcp_endpoint.streams import StandaloneStream
from dragoman.mcp_endpoint.views import EndpointTarget
from dragoman.scope import Caller

IDLE = 30 * 60.0
MOST = 2_000
MOST_PER_USER = 200
CANCELLED = -32800


class EndpointSession:
    def __init__(self, session_id: str, caller: Caller, target: EndpointTarget, params: Params) -> None:
        self.id = session_id
        self.caller = caller
        self.target = target
        self.client = params
        self.used_at = monotonic()
        self.stream: StandaloneStream | None = None
        self.told: dict[str, bytes] = {}  # the lists that the client knows, or was told to read again
        self.watched: Watched = {}
        self._running: dict[RequestId, asyncio.Task[Any]] = {}
        self._cancelled: set[RequestId] = set()
        self._asked: dict[RequestId, asyncio.Future[Params]] = {}
        self._ids = itertools.count(1)

    @property
    def is_busy(self) -> bool:
        return self.stream is not None or bool(self._running)

    def can(self, capability: str) -> bool:
        """Whether the client declared it."""
        declared = self.client.get("capabilities")
        return isinstance(declared, dict) and isinstance(declared.get(capability), dict)  # pyright: ignore[reportUnknownMemberType]

    @contextmanager
    def running(self, request_id: RequestId) -> Generator[None]:
        """While this lasts, the client may cancel the request; it then ends in an error of its own."""
        task = asyncio.current_task()
        assert task is not None
        self._running[request_id] = task
        try:
            yield
        except asyncio.CancelledError:
            if request_id not in self._cancelled or task.uncancel():
                raise
            raise RpcError(CANCELLED, "Request cancelled") from None
        finally:
            self._cancelled.discard(request_id)
            self._running.pop(request_id, None)

    def cancel(self, request_id: Any) -> None:
        if isinstance(request_id, int | str) and (task := self._running.get(request_id)):
            self._cancelled.add(request_id)
            task.cancel()

    async def ask(self, send: Callable[[bytes], Any], method: str, params: Params) -> Params:
        """One request to the client, and its answer; `send` puts it on a stream that the client reads."""
        request_id = f"dragoman-{next(self._ids)}"
        answer: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        try:
            await send(request_message(request_id, method, params))
            return await answer
        finally:
            self._asked.pop(request_id, None)

    def take(self, answer: RpcResponse) -> None:
        waiting = self._asked.get(answer.id)
        if waiting is None or waiting.done():
            return
        if answer.result is not None:
            waiting.set_result(answer.result)
        else:
            facts = answer.error or {}
            waiting.set_exception(RpcError(-32000, str(facts.get("message", "the client refused"))[:500]))

    def end(self) -> None:
        """Whatever the client still waits for is let go."""
        if self.stream is not None:
            self.stream.end()
        for request_id in [*self._running]:
            self.cancel(request_id)
        while self.watched:
            self.watched.popitem()[1]()


class EndpointSessions:
    def __init__(
        self,
        *,
        idle: float = IDLE,
        most: int = MOST,
        most_per_user: int = MOST_PER_USER,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._idle = idle
        self._most = most
        self._most_per_user = most_per_user
        self._clock = clock
        self._sessions: dict[str, EndpointSession] = {}  # the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, caller: Caller, target: EndpointTarget, params: Params) -> EndpointSession | None:
        """None when there is no room and every session is busy."""
        self._expire()
        own = [one for one in self._sessions.values() if _user(one.caller) == _user(caller)]
        for crowd, most in ((own, self._most_per_user), ([*self._sessions.values()], self._most)):
            if len(crowd) >= most:
                oldest = next((one for one in crowd if not one.is_busy), None)
                if oldest is None:
                    return None
                self.close(oldest)
        session = EndpointSession(token_urlsafe(24), caller, target, params)
        session.used_at = self._clock()
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str, caller: Caller, target: EndpointTarget) -> EndpointSession | None:
        session = self._sessions.get(session_id)
        if session is None or session.caller != caller or session.target != target:
            return None
        now = self._clock()
        if now - session.used_at > self._idle and not session.is_busy:
            self.close(session)
            return None
        session.used_at = now
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def close(self, session: EndpointSession) -> None:
        self._sessions.pop(session.id, None)
        session.end()

    def close_all(self) -> None:
        for session in [*self._sessions.values()]:
            self.close(session)

    def _expire(self) -> None:
        limit = self._clock() - self._idle
        for session in [*self._sessions.values()]:
            if session.used_at > limit:
                return
            if not session.is_busy:
                self.close(session)


def _user(caller: Caller) -> tuple[str, str]:
    return caller.workspace, caller.user
