"""One node asks another, over NATS: a request with an id, and messages in both directions until it is done.

A message is a line of JSON that says what it is, and a body of JSON, sealed. A large one goes in parts. NATS
says at once where nobody listens. What is said here may be lost: who asks looks after its request by its id.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from secrets import token_hex
from typing import Any

import orjson
from nats.errors import Error

from dragoman.cluster.messages import Unreadable, load_versioned, passed_over
from dragoman.cluster.nats_connection import LEAVES_WITHIN
from dragoman.cluster.places import NodeMessage, NodeReply
from dragoman.cluster.seals import MessageSeal, Opened
from dragoman.remote_data import parse_lenient_json
from dragoman.tool import json_bytes

_VERSION = 1
_READABLE = frozenset({1})
_PART = 512 * 1024
_MOST = 256 * 1024 * 1024  # bytes of one message, over all its parts
_MOST_PENDING = 512 * 1024 * 1024  # bytes that wait to be read
_PARTS_LIVE = 60.0  # seconds for the parts of one message


class Received:
    """A message of another node about one request. Fills `NodeMessage`."""

    __slots__ = ("_requests", "body", "id", "kind", "node")

    def __init__(self, requests: "NodeRequests", node: str, request: str, kind: str, body: Any) -> None:
        self._requests = requests
        self.node = node
        self.id = request
        self.kind = kind
        self.body = body

    async def reply(self, kind: str, body: Any = None) -> None:
        with suppress(ConnectionError):  # asked again, it is told again
            await self._requests.publish(self._requests.back(self.node, self.id), self.id, kind, body)


class SentRequest:
    """Fills `NodeRequest`."""

    def __init__(self, requests: "NodeRequests", node: str) -> None:
        self.id = token_hex(12)
        self.told: asyncio.Queue[NodeReply] = asyncio.Queue()
        self._requests = requests
        self._node = node
        self._numbers = count(1)

    async def send(self, kind: str, body: Any = None) -> int:
        number = next(self._numbers)
        requests = self._requests
        reply = f"{requests.back(requests.node, self.id)}.{number}"
        await requests.publish(requests.door(self._node), self.id, kind, body, reply)
        return number

    async def receive(self, longest: float) -> NodeReply | None:
        if not self.told.empty():
            return self.told.get_nowait()
        with suppress(TimeoutError):
            async with asyncio.timeout(longest):
                return await self.told.get()
        return None


class NodeRequests:
    """What this node asks and is asked."""

    def __init__(self, client: Any, prefix: str, node: str, seal: MessageSeal) -> None:
        self.node = node
        self._client = client
        self._prefix = prefix
        self._seal = seal
        self._last_asked: dict[str, int] = {}  # by node, the number of what it asked last
        self._sent: dict[str, SentRequest] = {}
        self._take: Callable[[NodeMessage], None] | None = None
        self._hear: Callable[[str, str, Any], None] | None = None
        self._parts: dict[tuple[str, str, str], _Parts] = {}
        self._words: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    def door(self, node: str) -> str:
        return f"{self._prefix}.ask.{node}"

    def back(self, node: str, request: str) -> str:
        return f"{self._prefix}.told.{node}.{request}"

    async def open(self) -> None:
        await self._subscribe(f"{self._prefix}.told.{self.node}.>", self._told)
        await self._subscribe(f"{self._prefix}.said", self._said)

    async def _subscribe(self, subject: str, heard: Callable[[Any], Awaitable[None]]) -> Any:
        return await self._client.subscribe(subject, cb=heard, pending_bytes_limit=_MOST_PENDING)

    @contextmanager
    def ask(self, node: str) -> Generator[SentRequest]:
        request = SentRequest(self, node)
        self._sent[request.id] = request
        try:
            yield request
        finally:
            del self._sent[request.id]

    @asynccontextmanager
    async def answering(self, take: Callable[[NodeMessage], None]) -> AsyncGenerator[None]:
        """Once it is over NATS says so to whoever asks; what came until then was taken."""
        self._take = take
        door = await self._subscribe(self.door(self.node), self._asked)
        try:
            yield
        finally:
            with suppress(Error, OSError, TimeoutError):
                async with asyncio.timeout(LEAVES_WITHIN):
                    await door.drain()
            self._take = None

    @contextmanager
    def hearing(self, hear: Callable[[str, str, Any], None]) -> Generator[None]:
        self._hear = hear
        try:
            yield
        finally:
            self._hear = None

    def say(self, kind: str, body: Any) -> None:
        self._words.put_nowait((kind, body))

    async def send_words(self) -> None:
        """What is said to all, in order."""
        while True:
            kind, body = await self._words.get()
            with suppress(ConnectionError):
                await self.publish(f"{self._prefix}.said", "", kind, body)

    async def publish(self, subject: str, request: str, kind: str, body: Any, reply: str = "") -> None:
        """`ConnectionError` where it cannot be sent."""
        if not self._client.is_connected:
            # Kept until NATS is back, it would be done when nobody expects it any more.
            raise ConnectionError("NATS does not answer")
        try:
            await self._publish(subject, request, kind, body, reply)
        except (Error, OSError) as error:
            raise ConnectionError(f"it cannot be sent: {error or type(error).__name__}") from error

    async def _publish(self, subject: str, request: str, kind: str, body: Any, reply: str) -> None:
        data = json_bytes(body) if body is not None else b""
        size = min(_PART, self._client.max_payload - 1024)
        head = {"v": _VERSION, "node": self.node, "id": request, "kind": kind}
        if len(data) <= size:
            await self._send(subject, orjson.dumps(head) + b"\n" + data, reply)
            return
        name = token_hex(6)
        for start in range(0, len(data), size):
            last = start + size >= len(data)
            facts = {**head, "part": name, "last": last, "start": start}
            # Only the last tells whether anybody listened.
            part = orjson.dumps(facts) + b"\n" + data[start : start + size]
            await self._send(subject, part, reply if last else "")

    async def _send(self, subject: str, message: bytes, reply: str) -> None:
        await self._client.publish(subject, self._seal.seal(subject, message), reply)

    async def _asked(self, message: Any) -> None:
        with passed_over():
            opened = self._seal.open(message.subject, message.data)
            # Whoever reads what nodes say could else say it again, and have a call made twice.
            if opened.number <= self._last_asked.get(opened.node, 0):
                raise Unreadable("something that was asked before")
            self._last_asked[opened.node] = opened.number
            if (received := self._read(opened)) is not None and self._take is not None:
                self._take(received)

    async def _said(self, message: Any) -> None:
        with passed_over():
            received = self._read(self._seal.open(message.subject, message.data))
            if received is not None and received.node != self.node and self._hear is not None:
                self._hear(received.node, received.kind, received.body)

    async def _told(self, message: Any) -> None:
        with passed_over():
            request, _, number = message.subject.removeprefix(self.back(self.node, "")).partition(".")
            headers: Any = message.headers or {}
            if not message.data and headers.get("Status") == "503":
                if sent := self._sent.get(request):
                    sent.told.put_nowait(NodeReply("nobody", None, int(number)))
                return
            received = self._read(self._seal.open(message.subject, message.data))
            if received is not None and (sent := self._sent.get(received.id)):
                sent.told.put_nowait(NodeReply(received.kind, received.body))

    def _read(self, opened: Opened) -> Received | None:
        """None while parts of it are to come."""
        line, _, data = opened.message.partition(b"\n")
        head = load_versioned(line, _READABLE)
        node, request, kind = head.get("node"), head.get("id"), head.get("kind")
        if node != opened.node or not (isinstance(request, str) and isinstance(kind, str)):
            raise Unreadable("a request without id or kind, or of another node than it says")
        if isinstance(part := head.get("part"), str):
            whole = self._joined((opened.node, request, part), head, data)
            if whole is None:
                return None
            data = whole
        try:
            body = parse_lenient_json(data) if data else None
        except ValueError as error:
            raise Unreadable(f"a body that cannot be read: {error}") from None
        return Received(self, opened.node, request, kind, body)

    def _joined(self, name: tuple[str, str, str], head: dict[str, Any], data: bytes) -> bytes | None:
        now = asyncio.get_running_loop().time()
        for old in [one for one, parts in self._parts.items() if now - parts.began > _PARTS_LIVE]:
            del self._parts[old]
        parts = self._parts.setdefault(name, _Parts(now))
        if head.get("start") != parts.size or parts.size + len(data) > _MOST:
            del self._parts[name]
            raise Unreadable("a part that does not fit the one before")
        parts.pieces.append(data)
        parts.size += len(data)
        if not head.get("last"):
            return None
        del self._parts[name]
        return b"".join(parts.pieces)


class _Parts:
    __slots__ = ("began", "pieces", "size")

    def __init__(self, began: float) -> None:
        self.began = began
        self.pieces: list[bytes] = []
        self.size = 0
