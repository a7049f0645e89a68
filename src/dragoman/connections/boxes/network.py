"""The network of a box: a forward proxy that decides, names resolved by us, and nothing beside it.

The box is in a network namespace in which every address is its own. The sockets that listen there are handed
to us when it starts; so whatever its program connects to, we are asked: by CONNECT, by plain HTTP, or by a
connection that knows of no proxy and means the address that it names. The wire of a connection owns it.
"""

import asyncio
import re
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self, cast

from dragoman.connections.addresses import Network, is_metadata, may_be_reached

PROXY = ("127.0.0.1", 3128)
NAMES = ("127.0.0.1", 53)
# What programs connect to without a proxy where everything public is open.
_USUAL_PORTS = (
    *(22, 25, 80, 110, 143, 389, 443, 465, 587, 636, 993, 995, 1433, 3306, 5432, 5671, 5672, 6379),
    *(8883, 9092, 9200, 27017),
)
_LARGEST_HEAD = 32 * 1024
_HEAD_LIMIT = 30.0
_DIAL_LIMIT = 10.0
_PIECE = 256 * 1024
_MOST_TOLD = 200
_ABSOLUTE = re.compile(rb"([A-Z]+) http://([^/ ]+)([^ ]*) (HTTP/1\.[01])\r\n", re.IGNORECASE)
_CONNECT = re.compile(rb"CONNECT ([^ ]+) HTTP/1\.[01]\r\n", re.IGNORECASE)
_OF_PROXIES = re.compile(rb"(?im)^(?:proxy-[a-z-]+|connection|keep-alive):[^\r\n]*\r\n")
_NOT_FOUND, _ADDRESS, _INTERNET = 3, 1, 1


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """Where a box may go. `places` are HOST:PORT, `*.` for all below a name; None is everywhere public.

    What is inside is reached only where it is named and who names it is trusted; metadata of clouds never.
    """

    places: tuple[str, ...] | None = None
    allowed: tuple[Network, ...] = ()
    is_trusted: bool = False

    @property
    def ports(self) -> tuple[int, ...]:
        if self.places is None:
            return _USUAL_PORTS
        return tuple(dict.fromkeys(int(place.rpartition(":")[2]) for place in self.places))

    @property
    def listen(self) -> tuple[tuple[str, int], ...]:
        return (PROXY, *(("0.0.0.0", port) for port in self.ports if port != PROXY[1]))  # noqa: S104

    def names(self, host: str, port: int | None = None) -> bool:
        """Whether a name may be looked up, and reached at this port."""
        if self.places is None:
            return True
        for place in self.places:
            name, _, number = place.lower().rpartition(":")
            is_it = host.endswith(name[1:]) if name.startswith("*.") else host == name
            if is_it and port in (None, int(number)):
                return True
        return False

    def admits(self, address: str) -> bool:
        """For the numeric address that is about to be connected to, of a name that it `names`."""
        if may_be_reached(address, self.allowed):
            return True
        return self.is_trusted and self.places is not None and not is_metadata(address)


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
    """One box's way out. `tell` hears of each place once, and of each that was refused."""

    def __init__(self, rule: NetworkRule, tell: Callable[[NetworkDecision], None]) -> None:
        self._rule = rule
        self._tell = tell
        self._told: set[tuple[str, bool]] = set()
        self._known: dict[str, set[str]] = {"127.0.0.1": {"localhost"}}
        self._servers: list[asyncio.Server] = []
        self._sockets: list[socket.socket] = []
        self._datagrams: asyncio.DatagramTransport | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._given, self._channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._given.setblocking(False)
        self.use = NetworkUse()

    @property
    def channel(self) -> int:
        """Where the launcher hands over what listens inside. Who spawns it closes it."""
        return self._channel.detach()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._channel.close()
        self._given.close()
        for server in self._servers:
            server.close()
        if self._datagrams is not None:
            self._datagrams.abort()
        for one in self._sockets:
            if one.type != socket.SOCK_DGRAM or self._datagrams is None:
                one.close()  # also where it was given up before all of them were answered
        for writer in [*self._writers]:
            writer.transport.abort()

    async def listen(self) -> None:
        """Takes what listens inside and answers it. Returns at once where the box could not be made."""
        self._sockets = await self._handed_over()
        for one in self._sockets:
            one.setblocking(False)
            if one.type == socket.SOCK_DGRAM:
                loop = asyncio.get_running_loop()
                self._datagrams, _ = await loop.create_datagram_endpoint(
                    lambda: _Names(self._resolve), sock=one
                )
                continue
            is_proxy = one.getsockname()[1] == PROXY[1]
            answer = self._answer_proxy if is_proxy else self._answer_direct
            self._servers.append(await asyncio.start_server(self._kept(answer), sock=one, limit=_PIECE))

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
        if why:
            self.use.refused[place] += 1
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
        admitted = [address for address in addresses if self._rule.admits(address)]
        if not admitted:
            self._decide(host, port, "it leads to an address inside the network")
        self._decide(host, port)
        return admitted

    async def _dialled(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        cause: OSError | None = None
        for address in await self._addresses(host, port):
            try:
                async with asyncio.timeout(_DIAL_LIMIT):
                    return await asyncio.open_connection(address, port, limit=_PIECE)
            except OSError as error:
                cause = error
        raise Refusal(f"{host}:{port} cannot be reached: {cause}")

    async def _resolve(self, name: str) -> list[str]:
        """The addresses of a name that the box may know."""
        host = name.rstrip(".").lower()
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
            one for one in dict.fromkeys(str(info[4][0]) for info in found) if self._rule.admits(one)
        ]
        for address in addresses:
            self._known.setdefault(address, set()).add(host)
        return addresses[:8]

    # Answering

    def _kept(
        self, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.add(writer)
            self.use.connections += 1
            try:
                await answer(reader, writer)
            except (OSError, Refusal, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                return  # the program sees its connection end
            finally:
                self._writers.discard(writer)
                writer.transport.abort() if writer.is_closing() else writer.close()

        return answered

    async def _answer_direct(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection to an address: it means the name that we gave the address for, or itself."""
        address, port = writer.get_extra_info("sockname")[:2]
        hosts = [*self._known.get(address, ()), address]
        host = next((one for one in hosts if self._rule.names(one, port)), hosts[0])
        theirs = await self._dialled(host, port)
        await self._joined(reader, writer, *theirs)

    async def _answer_proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_LIMIT):
            head = await reader.readuntil(b"\r\n\r\n")
        if len(head) > _LARGEST_HEAD:
            return
        try:
            if match := _CONNECT.match(head):
                theirs = await self._dialled(*_place(match[1], None))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            elif match := _ABSOLUTE.match(head):
                theirs = await self._dialled(*_place(match[2], 80))
                line = match[1] + b" " + (match[3] or b"/") + b" " + match[4] + b"\r\n"
                rest = _OF_PROXIES.sub(b"", head[match.end() :])
                # One request for each connection: the next may be for a place that was not decided on.
                theirs[1].write(line + b"Connection: close\r\n" + rest)
            else:
                raise Refusal("this is a proxy: ask for http://… or CONNECT HOST:PORT")
        except Refusal as why:
            text = f"Dragoman: {why}\n".encode()
            writer.write(
                b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(text), text)
            )
            with suppress(OSError):
                await writer.drain()
            return
        await self._joined(reader, writer, *theirs)

    async def _joined(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        their_reader: asyncio.StreamReader,
        their_writer: asyncio.StreamWriter,
    ) -> None:
        self._writers.add(their_writer)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._copy(reader, their_writer, "sent"))
                both.create_task(self._copy(their_reader, writer, "received"))
        finally:
            self._writers.discard(their_writer)
            their_writer.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, name: str) -> None:
        while data := await _read(source):
            setattr(self.use, name, getattr(self.use, name) + len(data))
            target.write(data)
            try:
                await target.drain()
            except OSError:
                return
        with suppress(OSError, RuntimeError):
            target.write_eof()


async def _read(source: asyncio.StreamReader) -> bytes:
    try:
        return await source.read(_PIECE)
    except OSError:
        return b""


def _place(text: bytes, usual: int | None) -> tuple[str, int]:
    host, colon, port = text.decode("ascii", "replace").rpartition(":")
    if not colon and usual is not None:
        host, port = port, str(usual)
    if not host or not port.isdigit() or not 0 < int(port) < 65536 or "@" in host:
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
