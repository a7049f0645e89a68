"""What other machines send, read within limits: bodies by their bytes after decompression, JSON by its depth.

All outgoing HTTP reads bodies here and nowhere else: a length that a server states is a claim, and that of
something compressed says nothing of what it becomes.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import orjson

from dragoman import collector

if TYPE_CHECKING:
    import aiohttp

MAX_DEPTH = 128  # levels of lists and objects: more than results and schemas have, less than code can follow
_WRITABLE_DEPTH = 254  # orjson's own limit when it writes
PIECE = 32 * 1024
"""Bytes of a body that are read, and decompressed, in one turn of the event loop."""
_SMALL, _PAUSE = 1024 * 1024, 0.002


class BodyTooLarge(ValueError):
    """A body holds more bytes than its reader wants; its connection is closed. Says how many those are."""

    @classmethod
    def beyond(cls, limit: int) -> "BodyTooLarge":
        return cls(f"more than {limit:,} bytes")


class NestedTooDeep(ValueError):
    """JSON with more levels than code that walks it can be asked to follow."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {MAX_DEPTH} levels deep")


async def read_body(response: "aiohttp.ClientResponse", limit: int) -> bytes:
    """The whole body, decompressed; `BodyTooLarge` as soon as it holds more than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    async for piece in body_pieces(response):
        size += len(piece)
        if size > limit:
            response.close()
            raise BodyTooLarge.beyond(limit)
        parts.append(piece)
    return b"".join(parts)


async def body_pieces(response: "aiohttp.ClientResponse") -> AsyncGenerator[bytes]:
    """A body as it comes, in pieces of a size that one turn of the event loop can take.

    Everybody else has a turn between two of them, and more than one turn when the body is large: what is
    already there, or swells out of a few compressed bytes, would never wait by itself.
    """
    size = 0
    async for chunk in response.content.iter_any():
        for start in range(0, len(chunk), PIECE):
            piece = chunk[start : start + PIECE]
            yield piece
            size += len(piece)
            if start + PIECE < len(chunk) or not response.content.at_eof():
                await asyncio.sleep(_PAUSE if size > _SMALL else 0)


def parse_json(data: bytes) -> Any:
    """The JSON in `data`; `ValueError` where there is none, `NestedTooDeep` beyond `MAX_DEPTH`."""
    return _no_deeper(orjson.loads(data) if len(data) < _SMALL else _load_large(data), data)


def _load_large(data: bytes) -> Any:
    """What is parsed holds no cycles, and to look for some takes three quarters of the time."""
    with collector.paused():
        return orjson.loads(data)


def parse_lenient_json(data: bytes) -> Any:
    """The same, and it mends what servers really send: bytes that are no UTF-8, lone surrogates, NaN."""
    try:
        return parse_json(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8", "replace")
    try:
        mended = json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)
    except RecursionError:
        raise NestedTooDeep from None
    return parse_json(mended.encode("utf-8", "replace"))


def _no_deeper(value: Any, data: bytes) -> Any:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return value  # so few brackets cannot make more levels
    wrapped = value
    for _ in range(_WRITABLE_DEPTH - MAX_DEPTH):
        wrapped = [wrapped]
    try:
        orjson.dumps(wrapped)  # the fastest walk there is: ten times that of a loop over it
    except TypeError:
        raise NestedTooDeep from None
    return value
