"""The HTTP server before the doors: how long a connection may take for what, and how many there may be.

A connection waits for a request's head, its body, the next request, or a client that reads. Every wait has
its limit; where there are too many connections, those that have waited longest make room. Knows nothing of
what is asked.
"""

import asyncio
import re
import resource
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal, get_args

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from dragoman.errors import DragomanError
from dragoman.settings import Settings
from dragoman.telemetry.logs import get_logger
from dragoman.web.problems import HeadTooLarge, Overloaded, TooSlow, problem

Wait = Literal["head", "idle", "body", "reader"]
"""Reader: an answer is ready, and nobody takes it."""

KEEP_ALIVE = 75.0
_MOST_OF_HEAD = 64 * 1024
_MOST_FILES = 65_536
_BACKLOG = 4096  # where it is full, a new client waits a second before it tries again
# In one turn of the loop. Accepting is cheap; what a connection says when it begins may cost a millisecond.
_ACCEPTED_AT_ONCE = 256
_BEGUN_AT_ONCE = 8
_PEEKED = 16 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,6})\r?$", re.IGNORECASE | re.MULTILINE)
_CLOSED_AT_ONCE = 250
_LATE = 0.25  # who is too slow is noticed so much later
_JOINED = 256 * 1024  # of a body; to copy more costs more than a packet
_NO_FILES_PAUSE = 0.2
_LAST_TURNS = 10  # of the loop, in which what has arrived is read: it is answered before the end
# Waits for the client to say something. Who waits for something of ours cannot be spared.
_SPARED: tuple[Wait, ...] = ("head", "idle", "body")

log = get_logger()


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`seconds` are those that each wait may last."""

    most: int
    seconds: Mapping[Wait, float]

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionLimits":
        """Below the limit of descriptors, which is raised as far as the system allows.

        What tool servers, the store and the log need stays free: half of them where there are few.
        """
        files = _raise_file_limit()
        kept = min(100 + 8 * settings.max_servers, files // 2)
        seconds: dict[Wait, float] = {
            "head": settings.header_timeout,
            "body": settings.body_timeout,
            "idle": KEEP_ALIVE,
            "reader": settings.send_timeout,
        }
        return cls(min(settings.max_connections, files - kept), seconds)


def _raise_file_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not without end: tool servers inherit it, and some programs look at every number up to it.
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft  # macOS promises more than it gives
    return wanted


class OpenConnections:
    """Who waits for what since when, those who have waited longest first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self.keeps_alive = True
        self._now = asyncio.get_running_loop().time
        # Not so many that who has just come makes room for them before it was heard.
        self.accepted_at_once = max(1, min(_ACCEPTED_AT_ONCE, limits.most // 8))
        self._waiting: dict[Wait, dict[HttpConnection, float]] = {wait: {} for wait in get_args(Wait)}
        self.too_many = _as_bytes(Overloaded("there are too many connections", retry_after=1.0))
        self._too_slow = {
            wait: _as_bytes(TooSlow(f"the {wait} of the request did not come within {seconds:g} s"))
            for wait, seconds in limits.seconds.items()
        }

    def begin(self, wait: Wait, connection: "HttpConnection") -> None:
        self._waiting[wait].setdefault(connection, self._now())

    def end(self, wait: Wait, connection: "HttpConnection") -> None:
        self._waiting[wait].pop(connection, None)

    def has_room_for(self, count: int) -> bool:
        if count > self._limits.most:
            log.warning("http.too_many_connections", most=self._limits.most)
        return count <= self._limits.most

    def make_room(self) -> bool:
        """The one that has waited longest has to go: for it, least comes. No answer under way is cut."""
        oldest = [next(iter(self._waiting[wait].items()), None) for wait in _SPARED]
        found = min((entry for entry in oldest if entry), key=lambda entry: entry[1], default=None)
        if found is not None:
            found[0].drop(self.too_many)
        return found is not None

    def close_late(self) -> None:
        """Not all of a crowd in one turn of the loop: others want to be answered meanwhile."""
        now = self._now()
        for wait, connections in self._waiting.items():
            limit = now - self._limits.seconds[wait]
            for connection, since in [*islice(connections.items(), _CLOSED_AT_ONCE)]:
                if since > limit:
                    break
                connection.drop(self._too_slow[wait])


class AnswerWriter:
    """What an answer is written to. Its head waits for the first of its body, and both go in one packet:
    two cost a system call here and another at the client.

    Only where the head says how long the body is: a stream may begin long before its first word.
    """

    __slots__ = ("_cycle", "_head", "_is_begun", "_transport")

    def __init__(self, transport: asyncio.Transport, cycle: RequestResponseCycle) -> None:
        self._transport = transport
        self._cycle = cycle
        self._is_begun = False
        self._head = b""

    def write(self, data: bytes) -> None:
        if not self._is_begun:
            self._is_begun = True
            if self._cycle.chunked_encoding is False and self._cycle.scope["method"] != "HEAD":
                self._head = data
                return
        elif self._head:
            head, self._head = self._head, b""
            if len(data) <= _JOINED:
                data = head + data
            else:
                self._transport.write(head)
        self._transport.write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._transport.close()


class HttpConnection(HttpToolsProtocol):
    def __init__(self, open_connections: OpenConnections, **uvicorn_gives: Any) -> None:
        super().__init__(**uvicorn_gives)
        self._open = open_connections
        self._wait: Wait | None = None
        self._is_in_head = False
        self._bytes_of_head = 0
        self._is_ending = False

    def shutdown(self) -> None:
        """The answer under way is the last: what else was asked is not begun any more."""
        self._is_ending = True
        self.pipeline.clear()
        super().shutdown()

    def drop(self, answer: bytes) -> None:
        """Whatever it waits for. `answer` is for who has begun a request and had none."""
        self._end_waits()  # before the loop gets to close it: nobody counts on it twice
        is_unanswered = self._is_in_head or (self.cycle and not self.cycle.response_started)
        if is_unanswered and not self.transport.is_closing():
            self.transport.write(answer)
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # nobody reads: closing would wait for that
        else:
            self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for("head")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waits()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._wait == "idle":
            self._wait_for("head")
        super().data_received(data)
        if self._is_in_head:
            self._bytes_of_head += len(data)
            if self._bytes_of_head > _MOST_OF_HEAD:
                error = HeadTooLarge(f"the head of a request may have at most {_MOST_OF_HEAD:,} bytes")
                self.drop(_as_bytes(error))

    def on_message_begin(self) -> None:
        self._is_in_head, self._bytes_of_head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._wait_for("body")
        super().on_headers_complete()
        writer: Any = AnswerWriter(self.transport, self.cycle)
        self.cycle.transport = writer
        if not self._open.keeps_alive:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._wait_for("idle" if self.cycle.response_complete else None)

    def on_response_complete(self) -> None:
        """As uvicorn's, without its timer: who says nothing more is ended by `OpenConnections`."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
        if self._is_ending:
            self.transport.close()
        if self.transport.is_closing():
            self._open.begin("reader", self)  # closed once the rest is read
        elif self._wait is None and not self.pipeline and self.cycle.response_complete:
            self._wait_for("head" if self._is_in_head else "idle")

    def pause_writing(self) -> None:
        self._open.begin("reader", self)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._open.end("reader", self)
        super().resume_writing()

    def _end_waits(self) -> None:
        self._wait_for(None)
        self._open.end("reader", self)

    def _wait_for(self, wait: Wait | None) -> None:
        if self._wait is not None:
            self._open.end(self._wait, self)
        self._wait = wait
        if wait is not None:
            self._open.begin(wait, self)


def _as_bytes(error: DragomanError) -> bytes:
    response = problem(error)
    head = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
    return b"%b%bconnection: close\r\n\r\n%b" % (STATUS_LINE[response.status_code], head, response.body)


class Arrivals:
    """Connections that are accepted and not begun: who has said all is first, of the rest a few in each turn.

    A crowd of half requests so delays itself and nobody else. In the order of their coming, everybody who
    comes after it would wait until the last of it has begun.
    """

    def __init__(
        self, protocol: Callable[[], asyncio.Protocol], open_connections: OpenConnections, begun: Sized
    ) -> None:
        self._protocol = protocol
        self._open = open_connections
        self._begun = begun
        self._loop = asyncio.get_running_loop()
        self._listeners: set[socket.socket] = set()
        self._new: list[socket.socket] = []
        self._queue: deque[socket.socket] = deque()
        self._beginning: set[asyncio.Task[None]] = set()

    def listen(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        self._listeners.add(listener)
        self._resume(listener)

    def close(self) -> None:
        """Nobody else is taken. Who has come and said all is still begun."""
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            for _ in range(_BACKLOG):
                if not self._accept(listener):
                    break
        self._listeners.clear()
        waiting = [*self._new, *self._queue]
        self._new.clear()
        self._queue.clear()
        for connection in waiting:
            if _has_said_all(connection):
                self._start(connection)
            else:
                connection.close()

    def _resume(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            self._loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> bool:
        """Whether there may be more."""
        if not (self._new or self._queue):
            self._loop.call_soon(self._begin)
        for _ in range(self._open.accepted_at_once):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as error:  # no descriptors are left, and it would be tried without end
                log.warning("http.cannot_accept", cause=str(error))
                self._open.make_room()
                self._loop.remove_reader(listener)
                self._loop.call_later(_NO_FILES_PAUSE, self._resume, listener)
                return False
            connection.setblocking(False)
            self._new.append(connection)
            self._keep_to_limit()
        return True

    def _keep_to_limit(self) -> None:
        """Where none that is begun can be spared, the one that waits longest here goes."""
        if self._open.has_room_for(len(self._begun) + len(self._new) + len(self._queue)):
            return
        if not self._open.make_room():
            oldest = self._queue or self._new
            refused = next((one for one in oldest if not _has_said_all(one)), oldest[0])
            oldest.remove(refused)
            with refused, suppress(OSError):
                refused.send(self._open.too_many)

    def _begin(self) -> None:
        """A turn after they were accepted: most have spoken by then."""
        new, self._new = self._new, []
        for connection in new:
            if _has_said_all(connection):
                self._start(connection)
            else:
                self._queue.append(connection)
        for _ in range(min(_BEGUN_AT_ONCE, len(self._queue))):
            self._start(self._queue.popleft())
        if self._queue:
            self._loop.call_soon(self._begin)

    def _start(self, connection: socket.socket) -> None:
        task = self._loop.create_task(self._begin_one(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _begin_one(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:  # it was gone already
            connection.close()


def _has_said_all(connection: socket.socket) -> bool:
    """Whether a whole request waits to be read."""
    try:
        head, end, body = connection.recv(_PEEKED, socket.MSG_PEEK).partition(b"\r\n\r\n")
    except OSError:
        return False
    length = _LENGTH.search(head)
    return bool(end) and len(body) == (int(length[1]) if length else 0)


class HttpServer(uvicorn.Server):
    """Serves an app within limits. Owns its connections, not what it listens on."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits, last_requests: float) -> None:
        self._ended = asyncio.Event()
        self._open = OpenConnections(limits)
        protocol: Any = partial(HttpConnection, self._open)
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=int(last_requests),
            )
        )
        made = partial(protocol, config=self.config, server_state=self.server_state, app_state={})
        self._arrivals = Arrivals(made, self._open, self.server_state.connections)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])  # what is accepted, and in which order, is ours
        for listener in sockets or ():
            self._arrivals.listen(listener)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._arrivals.close()
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)
        await super().shutdown(sockets)
        for connection in [*self.server_state.connections]:
            connection.transport.abort()  # whoever still does not read

    def end_connections(self) -> None:
        """Each answer says that it is its connection's last: nobody sends a request into one that closes."""
        self._open.keeps_alive = False

    @property
    def should_exit(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - uvicorn looks at it
        return self._ended.is_set()

    @should_exit.setter
    def should_exit(self, ends: bool) -> None:
        if ends:
            self._ended.set()

    async def main_loop(self) -> None:
        """Ends at once when it is told to, where uvicorn looks ten times a second whether it was."""
        self.server_state.default_headers = self.config.encoded_headers
        while not self.should_exit:
            self._open.close_late()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LATE):
                    await self._ended.wait()


def listening_socket(
    family: socket.AddressFamily, address: tuple[str, int], vanished: float
) -> socket.socket:
    """A client that has `vanished` for so many seconds, without a word, is taken for gone."""
    # Said to be TCP in so many words: asyncio turns Nagle's delay off only then, and it costs 40 ms a call.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if sys.platform == "linux":
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(vanished * 1000))
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
