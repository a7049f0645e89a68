"""Server-sent events cut out of a byte stream, in linear time and with a limit on their size."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import aiohttp

from dragoman.connections.wire_faults import too_large
from dragoman.remote_data import body_pieces

_MOST_DIGITS = 9
_PER_TURN = 16
_FEW_LINES, _SLICE = 256, 2048


class EventTooLarge(Exception):
    """One event holds more bytes than the limit."""


@dataclass(slots=True)
class ServerEvent:
    event: str
    data: bytes
    id: str | None
    retry: int | None


async def read_events(
    response: aiohttp.ClientResponse, limit: int, count: Callable[[int, int], None]
) -> AsyncGenerator[ServerEvent]:
    """The events of a response; everybody else has a turn between a few of them.

    `count` is told the bytes and the number of lines that are part of no event.
    """
    decoder = EventDecoder(limit)
    try:
        async for piece in body_pieces(response):
            is_whole = piece.count(b"\n") + piece.count(b"\r") <= _FEW_LINES
            for start in range(0, len(piece), len(piece) if is_whole else _SLICE):
                part = piece if is_whole else piece[start : start + _SLICE]
                events = decoder.feed(part)
                if decoder.idle_lines:
                    count(0 if events else len(part), decoder.idle_lines)
                    decoder.idle_lines = 0
                for number, event in enumerate(events, 1):
                    yield event
                    if number % _PER_TURN == 0:
                        await asyncio.sleep(0)
                if not is_whole:
                    await asyncio.sleep(0)
    except EventTooLarge:
        raise too_large(f"an event of more than {limit:,} bytes") from None


class EventDecoder:
    """Feed it bytes, take events. Lines may end in LF, CRLF or CR, and be cut anywhere.

    `idle_lines` counts what is part of no event: comments, fields that nobody knows, events of nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._size = 0
        self._event = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self._retry: int | None = None
        self.idle_lines = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        self._rest.append(chunk)
        self._rest_size += len(chunk)
        if b"\n" not in chunk and b"\r" not in chunk:
            self._check_size()
            return []
        text = b"".join(self._rest)
        self._rest.clear()
        if text.endswith(b"\r"):  # its LF may be in the next chunk
            self._rest.append(b"\r")
            text = text[:-1]
        *lines, last = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if last or self._rest:
            self._rest.insert(0, last)
        self._rest_size = len(last)
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._finish()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) <= _MOST_DIGITS:
            self._retry = int(value)
        else:
            self.idle_lines += 1
            return None
        self._size += len(line)
        self._check_size()
        return None

    def _check_size(self) -> None:
        if self._size + self._rest_size > self._limit:
            raise EventTooLarge

    def _finish(self) -> ServerEvent | None:
        self._size = 0
        if not self._data and self._id is None and self._retry is None:
            self._event = ""
            self.idle_lines += 1
            return None
        event = ServerEvent(self._event or "message", b"\n".join(self._data), self._id, self._retry)
        self._event, self._data, self._id, self._retry = "", [], None, None
        return event
