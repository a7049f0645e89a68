"""The network of a box: a forward proxy that decides, names resolved by us, and nothing beside it.

The box is in a network namespace in which every address is its own. The sockets that listen there are handed
to us when it starts; so whatever its program connects to, we are asked: by CONNECT, by plain HTTP, or by a
connection that knows of no proxy and means the address that it names. The wire of a connection owns it.
"""

import asyncio
import fcntl
import os
import re
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Self, cast

from dragoman.connections.addresses import Network, is_metadata, may_be_reached
from dragoman.telemetry.logs import get_logger

PROXY = ("127.0.0.1", 3128)
FULL = "full"
# What programs connect to without a proxy where everything public is open.
_USUAL_PORTS = (
    *(22, 25, 80, 110, 143, 389, 443, 465, 587, 636, 993, 995, 1433, 3306, 5432, 5671, 5672, 6379),
    *(8883, 9092, 9200, 27017),
)
_LARGEST_HEAD = 32 * 1024
_HEAD_LIMIT = 30.0
_DIAL_LIMIT = 10.0
_PIECE = 1024 * 1024
_PAUSE = 0.1  # before the next connection is taken, where the machine has no descriptor for it
_MOST_TOLD = 200
# One box takes no more than this of what everybody has: our descriptors, and our memory.
_MOST_AT_ONCE = 100
_MOST_KNOWN = 4096
_LONGEST_NAME = 253
_ABSOLUTE = re.compile(rb"([A-Z]+) http://([^/ ]+)([^ ]*) (HTTP/1\.[01])\r\n", re.IGNORECASE)
_CONNECT = re.compile(rb"CONNECT ([^ ]+) HTTP/1\.[01]\r\n", re.IGNORECASE)
_OF_PROXIES = re.compile(rb"(?im)^(?:proxy-[a-z-]+|connection|keep-alive):[^\r\n]*\r\n")
_NOT_FOUND, _ADDRESS, _INTERNET = 3, 1, 1


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """Where a box may go. `places` are HOST:PORT, `*.` for all below a name; `full` is everywhere public.

    What is inside is reached only where it is named and who names it is trusted; metadata of clouds never.
    """

    places: tuple[str, ...] = (FULL,)
    allowed: tuple[Network, ...] = ()
    is_trusted: bool = False

    @property
    def ports(self) -> tuple[int, ...]:
        named = (int(place.rpartition(":")[2]) for place in self.places if place != FULL)
        return tuple(dict.fromkeys((*(_USUAL_PORTS if FULL in self.places else ()), *named)))

    @property
    def listen(self) -> tuple[tuple[str, int], ...]:
        return (PROXY, *(("0.0.0.0", port) for port in self.ports if port != PROXY[1]))  # noqa: S104

    def names(self, host: str, port: int | None = None) -> bool:
        """Whether a name may be looked up, and reached at this port."""
        return FULL in self.places or self.lists(host, port)

    def lists(self, host: str, port: int | None) -> bool:
        """Whether it is named, beside `full`."""
        for place in self.places:
            if place == FULL:
                continue
            name, _, number = place.lower().rpartition(":")
            is_it = host.endswith(name[1:]) if name.startswith("*.") else host == name
            if is_it and port in (None, int(number)):
                return True
        return False

    def admits(self, address: str, host: str, port: int | None = None) -> bool:
        """For the numeric address that is about to be connected to, of a name that it `names`."""
        if may_be_reached(address, self.allowed):
            return True
        return self.is_trusted and self.lists(host, port) and not is_metadata(address)


@dataclass(slots=True)
class NetworkUse:
    """What a box did with its network, for people to see."""

    sent: int = 0
    received: int = 0
    connections: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True, slots=True)
class NetworkDecision:
    place: str
    is_allowed: bool
    why: str = ""


class Refusal(Exception):
    """Why a place is not reached."""


class BoxProxy:
    """One box's way out. `tell` hears of each place once, and of each that was refused; `use` is counted on.

    Bytes go from socket to socket in the kernel: what passes costs this process little.
    """

    def __init__(
        self,
        rule: NetworkRule,
        tell: Callable[[NetworkDecision], None],
        use: NetworkUse,
    ) -> None:
        self._rule = rule
        self._tell = tell
        self._told: set[tuple[str, bool]] = set()
        self._known: dict[tuple[str, str], None] = {}
        self._given, self._channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._given.setblocking(False)
        self._use = use
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)

    @property
    def channel(self) -> int:
        """Where the launcher hands over what listens inside. Who spawns it closes it."""
        return self._channel.detach()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._channel.close()
        self._given.close()

    async def listen(self) -> None:
        """Takes what listens inside and answers it until it is cancelled. Returns at once where the box
        could not be made.
        """
        await self.answer(await self._handed_over())

    async def answer(self, sockets: Iterable[socket.socket]) -> None:
        """Answers what listens, and closes it: names, the proxy, and every other port as itself."""
        with ExitStack() as stack:
            listening = [stack.enter_context(one) for one in sockets]
            async with asyncio.TaskGroup() as group:
                for one in listening:
                    one.setblocking(False)
                    if one.type == socket.SOCK_DGRAM:
                        group.create_task(self._answer_names(one))
                    else:
                        group.create_task(self._accept(one, group))

    async def _answer_names(self, one: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _Names(self._resolve), sock=one)
        try:
            await loop.create_future()  # until it is cancelled
        finally:
            transport.abort()

    async def _accept(self, listening: socket.socket, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        is_proxy = listening.getsockname()[1] == PROXY[1]
        answer = self._answer_proxy if is_proxy else self._answer_direct
        while True:
            try:
                one, _ = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(_PAUSE)
                continue
            with ExitStack() as unanswered:
                unanswered.enter_context(one)
                await self._room.acquire()
                unanswered.pop_all()
            group.create_task(self._kept(one, answer)).add_done_callback(lambda _: self._room.release())

    async def _handed_over(self) -> list[socket.socket]:
        loop = asyncio.get_running_loop()
        is_there = asyncio.Event()
        loop.add_reader(self._given, is_there.set)
        try:
            await is_there.wait()
        finally:
            loop.remove_reader(self._given)
        _, descriptors, _, _ = socket.recv_fds(self._given, 16, 250)
        return [socket.socket(fileno=one) for one in descriptors]

    # Deciding

    def _decide(self, host: str, port: int, why: str = "") -> None:
        place = f"{host}:{port}"
        if why and (place in self._use.refused or len(self._use.refused) < _MOST_TOLD):
            self._use.refused[place] += 1
        told = (place, not why)
        if told not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(told)
            self._tell(NetworkDecision(place, not why, why))
        if why:
            raise Refusal(f"{place} is refused: {why}")

    async def _addresses(self, host: str, port: int) -> list[str]:
        """Where a name leads, of what may be reached. `Refusal` says which rule was against it."""
        if not self._rule.names(host, port):
            self._decide(host, port, "it is not in the connector's network")
        try:
            async with asyncio.timeout(_DIAL_LIMIT):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Refusal(f"{host} is not known") from None
        addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
        admitted = [address for address in addresses if self._rule.admits(address, host, port)]
        if not admitted:
            self._decide(host, port, "it leads to an address inside the network")
        self._decide(host, port)
        return admitted

    async def _reached(self, host: str, port: int) -> socket.socket:
        cause: OSError | None = None
        for address in await self._addresses(host, port):
            one = _stream(socket.AF_INET6 if ":" in address else socket.AF_INET)
            try:
                async with asyncio.timeout(_DIAL_LIMIT):
                    await asyncio.get_running_loop().sock_connect(one, (address, port))
                return one
            except OSError as error:
                one.close()
                cause = error
            except BaseException:
                one.close()
                raise
        raise Refusal(f"{host}:{port} cannot be reached: {cause}")

    async def _resolve(self, name: str) -> list[str]:
        """The addresses of a name that the box may know."""
        host = name.rstrip(".").lower()
        if len(host) > _LONGEST_NAME:
            return []
        if not self._rule.names(host):
            with suppress(Refusal):
                self._decide(host, 0, "it is not in the connector's network")
            return []
        try:
            async with asyncio.timeout(_DIAL_LIMIT):
                found = await asyncio.get_running_loop().getaddrinfo(host, None, family=socket.AF_INET)
        except (OSError, UnicodeError):
            return []
        addresses = [
            one for one in dict.fromkeys(str(info[4][0]) for info in found) if self._rule.admits(one, host)
        ]
        for address in addresses:
            self._know(address, host)
        return addresses[:8]

    def _know(self, address: str, host: str) -> None:
        """Of who asks for names without end the oldest are forgotten."""
        self._known.setdefault((address, host), None)
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    # Answering

    async def _kept(self, one: socket.socket, answer: Callable[[socket.socket], Awaitable[None]]) -> None:
        self._use.connections += 1
        with one:
            try:
                _make_quick(one)
                await answer(one)
            except Exception as error:  # noqa: BLE001
                # boundary: the program sees this connection end; the box keeps its way out
                if not isinstance(error, OSError | Refusal):
                    get_logger().warning("box.connection_failed", exc_info=error)

    async def _answer_direct(self, ours: socket.socket) -> None:
        """A connection to an address: it means the name that we gave the address for, or itself."""
        address, port = ours.getsockname()[:2]
        known = [host for one, host in self._known if one == address]
        hosts = [*(["localhost"] if address == "127.0.0.1" else []), *known, address]
        host = next((one for one in hosts if self._rule.lists(one, port)), hosts[0])
        with await self._reached(host, port) as theirs:
            await self._joined(ours, theirs)

    async def _answer_proxy(self, ours: socket.socket) -> None:
        async with asyncio.timeout(_HEAD_LIMIT):
            head, rest = await _head_of(ours)
        try:
            if match := _CONNECT.match(head):
                theirs = await self._reached(*_place(match[1], None))
                said, early = b"HTTP/1.1 200 Connection established\r\n\r\n", rest
            elif match := _ABSOLUTE.match(head):
                theirs = await self._reached(*_place(match[2], 80))
                line = match[1] + b" " + (match[3] or b"/") + b" " + match[4] + b"\r\n"
                fields = _OF_PROXIES.sub(b"", head[match.end() :])
                # One request for each connection: the next may be for a place that was not decided on.
                said, early = b"", line + b"Connection: close\r\n" + fields + rest
            else:
                raise Refusal("this is a proxy: ask for http://… or CONNECT HOST:PORT")
        except Refusal as why:
            text = f"Dragoman: {why}\n".encode()
            refused = (
                b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(text), text)
            )
            await asyncio.get_running_loop().sock_sendall(ours, refused)
            return
        with theirs:
            await asyncio.get_running_loop().sock_sendall(ours, said)
            await self._joined(ours, theirs, early)

    async def _joined(self, ours: socket.socket, theirs: socket.socket, early: bytes = b"") -> None:
        """Until both have said their last; `early` is what the program has said already."""
        if early:
            self._count_sent(len(early))
            await asyncio.get_running_loop().sock_sendall(theirs, early)
        async with asyncio.TaskGroup() as both:
            both.create_task(_carried(ours, theirs, self._count_sent))
            both.create_task(_carried(theirs, ours, self._count_received))

    def _count_sent(self, count: int) -> None:
        self._use.sent += count

    def _count_received(self, count: int) -> None:
        self._use.received += count


def _stream(family: int) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setblocking(False)
    _make_quick(one)
    return one


def _make_quick(one: socket.socket) -> None:
    """Small messages leave at once."""
    one.setblocking(False)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def _head_of(one: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request with the empty line after it, and what came behind it."""
    said = b""
    while b"\r\n\r\n" not in said:
        piece = await asyncio.get_running_loop().sock_recv(one, _LARGEST_HEAD)
        said += piece
        if not piece or len(said) > 2 * _LARGEST_HEAD:
            raise Refusal("that is no request")
    head, end, rest = said.partition(b"\r\n\r\n")
    if len(head) > _LARGEST_HEAD:
        raise Refusal("the head of the request is too long")
    return head + end, rest


async def _carried(source: socket.socket, target: socket.socket, count: Callable[[int], None]) -> None:
    """Moves all bytes to the end, or until one of the two is gone; a slow target holds the source back."""
    outlet, inlet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # whoever has many of them gets smaller ones
            fcntl.fcntl(inlet, fcntl.F_SETPIPE_SZ, _PIECE)
        while held := await _moved(source.fileno(), inlet, _PIECE, is_source=True):
            count(held)
            while held:
                held -= await _moved(outlet, target.fileno(), held, is_source=False)
            await asyncio.sleep(0)  # the others have their turn
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
    finally:
        os.close(outlet)
        os.close(inlet)


async def _moved(source: int, target: int, most: int, *, is_source: bool) -> int:
    """How many bytes the kernel moved, once there are some; 0 where no more will come."""
    while True:
        try:
            return os.splice(source, target, most)
        except BlockingIOError:
            await _ready(source if is_source else target, is_source=is_source)


async def _ready(descriptor: int, *, is_source: bool) -> None:
    loop = asyncio.get_running_loop()
    is_there = loop.create_future()

    def told() -> None:
        if not is_there.done():
            is_there.set_result(None)

    if is_source:
        loop.add_reader(descriptor, told)
    else:
        loop.add_writer(descriptor, told)
    try:
        await is_there
    finally:
        loop.remove_reader(descriptor) if is_source else loop.remove_writer(descriptor)


def _place(text: bytes, usual: int | None) -> tuple[str, int]:
    host, colon, port = text.decode("ascii", "replace").rpartition(":")
    if not colon and usual is not None:
        host, port = port, str(usual)
    is_port = port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    if not host or len(host) > _LONGEST_NAME or not is_port or "@" in host:
        raise Refusal("that names no HOST:PORT")
    return host.strip("[]").rstrip(".").lower(), int(port)


class _Names(asyncio.DatagramProtocol):
    """Answers questions for addresses of names. Everything else, it says, is not there."""

    def __init__(self, resolve: Callable[[str], Awaitable[Iterable[str]]]) -> None:
        self._resolve = resolve
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        for task in self._tasks:
            task.cancel()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if len(self._tasks) < 64:  # more are asked again by whoever asks
            task = asyncio.get_running_loop().create_task(self._answer(data, addr))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, data: bytes, addr: tuple[str, int]) -> None:
        asked = _question(data)
        if asked is None:
            return
        name, kind, end = asked
        addresses = [*await self._resolve(name)] if kind in (_ADDRESS, 28) else []
        code = 0 if addresses else _NOT_FOUND
        answers = addresses if kind == _ADDRESS else []
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(answers), 0, 0)
        body = b"".join(
            struct.pack("!HHHIH", 0xC00C, _ADDRESS, _INTERNET, 30, 4) + socket.inet_aton(one)
            for one in answers
        )
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(head + data[12:end] + body, addr)


def _question(data: bytes) -> tuple[str, int, int] | None:
    """Name and kind of the one question of a DNS message, and where it ends."""
    if len(data) < 17 or data[2] & 0x80 or data[4:6] != b"\x00\x01":
        return None
    labels: list[str] = []
    at = 12
    while at < len(data) and (length := data[at]):
        if length > 63:
            return None
        labels.append(data[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    if at + 5 > len(data):
        return None
    (kind,) = struct.unpack("!H", data[at + 1 : at + 3])
    return ".".join(labels), kind, at + 5
