"""How aiohttp is used to ask others: what it leaves open is closed here. Loaded with the first client."""

import asyncio
from functools import partial
from typing import Any

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage

from dragoman.remote_data import PIECE

_LARGEST_HEAD = 512 * 1024
_MOST_INTERIM = 16  # answers before the one that counts
_HEAD_PIECE = 4096
_MOST_PER_BYTE = 16  # of a body: who sends it byte by byte sends five bytes besides


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


def open_client(**facts: Any) -> aiohttp.ClientSession:
    """Whoever opens it closes it."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0, **facts)
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
