"""How far a connector may reach: the HTTP clients of all connectors, and the addresses open to each."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage

from dragoman.connections.addresses import may_be_reached, read_networks
from dragoman.connections.boxes.box import Box
from dragoman.connections.boxes.boxes import ProgramStart
from dragoman.connector import Connector
from dragoman.errors import InvalidConfig
from dragoman.remote_data import PIECE

_LARGEST_HEAD = 512 * 1024
_MOST_INTERIM = 16  # answers before the one that counts
_HEAD_PIECE = 4096
_MOST_PER_BYTE = 16  # of a body: who sends it byte by byte sends five bytes besides

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Reach:
    """What one connector connects with.

    `environment` fills `${VAR}`; it is None for what people wrote, which refers to nothing of ours. Nor do
    they get a proxy or a local file: behind a proxy nobody can tell which address is reached.
    """

    client: aiohttp.ClientSession
    environment: Mapping[str, str] | None
    boxed: Callable[[ProgramStart], Box | None] = lambda start: None

    @property
    def is_trusted(self) -> bool:
        return self.environment is not None


class HttpClients:
    """Two clients that share no connection: one goes anywhere, one only where people may go."""

    def __init__(self, *, multi_user: bool = False, allowed_networks: Iterable[str] = ()) -> None:
        self._is_multi_user = multi_user
        self._allowed = read_networks(allowed_networks)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.trusted = await stack.enter_async_context(
                _client(aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0))
            )
            self.guarded = await stack.enter_async_context(
                # Racing several addresses would hide why one of them was refused.
                _client(
                    aiohttp.TCPConnector(
                        limit=0,
                        keepalive_timeout=30.0,
                        happy_eyeballs_delay=None,
                        socket_factory=self._guarded_socket,
                    )
                )
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def for_connector(self, connector: Connector) -> Reach:
        """What the operator answers for is trusted; so is everything where there is one user only."""
        if not self._is_multi_user or connector.origin != "people":
            return Reach(self.trusted, os.environ)
        return Reach(self.guarded, None)

    def _guarded_socket(self, info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        is_internet = family in (socket.AF_INET, socket.AF_INET6)
        if not is_internet or not may_be_reached(str(address[0]), self._allowed):
            # No name and no number: what a name stands for inside is the network's own business.
            raise InvalidConfig(
                "this leads to an address inside the network, where connectors that people add may not go",
                hint="use a public address, or ask the operator to allow it: DRAGOMAN_ALLOWED_NETWORKS",
            )
        return socket.socket(family, kind, protocol)


class _OutgoingProtocol(ResponseHandler):
    """What aiohttp leaves open.

    An answer must begin at some point: interim answers and headers are counted until its body does. In the
    body, so is what is none of it: lengths and names of chunks, and trailers. And who still reads a body when
    the connection is closed under it is told so.
    """

    _size = 0
    _answers = 0
    _received = 0

    def set_response_params(self, **facts: Any) -> None:
        self._size = self._answers = self._received = 0
        super().set_response_params(**facts)

    def close(self) -> None:
        body = self._payload
        super().close()
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientConnectionError("the connection was closed"))

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        self._answers += 1
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        start = 0
        while start < len(data) and (self._payload is None or self._payload.is_eof()):
            piece = data[start : start + _HEAD_PIECE]
            start += _HEAD_PIECE
            self._size += len(piece)
            if self._size > _LARGEST_HEAD or self._answers > _MOST_INTERIM:
                self._refuse("headers")
                return
            super().data_received(piece)
        if start < len(data) or not data:
            super().data_received(data[start:])
        if self._payload is not None and not self._payload.is_eof():
            body = self._payload.total_raw_bytes
            if self._received - body > 2 * _LARGEST_HEAD + _MOST_PER_BYTE * body:
                self._refuse("chunks")

    def _refuse(self, what: str) -> None:
        why = aiohttp.ServerDisconnectedError(f"the server sent {what} without end")
        self.set_exception(why)
        if self._payload is not None:
            self._payload.set_exception(why)
            self._payload = None  # else the end of the connection would be given as the reason
        if self.transport is not None:
            self.transport.abort()


def _client(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    # aiohttp has no other way to look at what comes before an answer begins.
    made = partial(_OutgoingProtocol, loop=asyncio.get_running_loop())
    connector._factory = made  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),  # a cookie kept for one user must never reach another
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
        trust_env=False,
        skip_auto_headers=("User-Agent",),
        # Else it would depend on which packages are installed what servers send, and what it costs to read.
        headers={"User-Agent": "dragoman", "Accept-Encoding": "gzip, deflate"},
        read_bufsize=PIECE,  # of something compressed, so much is decompressed at once
        max_line_size=64 * 1024,
        max_field_size=64 * 1024,
    )
