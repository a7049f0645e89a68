"""Server-sent events cut out of a byte stream, in linear time and with a limit on their size."""

from dataclasses import dataclass


class EventTooLarge(Exception):
    """One event holds more bytes than the limit."""


@dataclass(slots=True)
class ServerEvent:
    event: str
    data: bytes
    id: str | None
    retry: int | None


class EventDecoder:
    """Feed it bytes, take events. Lines may end in LF, CRLF or CR, and be cut anywhere."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._size = 0
        self._event = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        self._size += len(chunk)
        if self._size > self._limit:
            raise EventTooLarge
        if b"\n" not in chunk and b"\r" not in chunk:
            self._rest.append(chunk)
            return []
        self._rest.append(chunk)
        text = b"".join(self._rest)
        self._rest.clear()
        if text.endswith(b"\r"):  # its LF may be in the next chunk
            self._rest.append(b"\r")
            text = text[:-1]
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if lines[-1] or self._rest:
            self._rest.insert(0, lines[-1])
        return [event for line in lines[:-1] if (event := self._take(line)) is not None]

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
        elif field == b"retry" and value.isdigit():
            self._retry = int(value)
        return None

    def _finish(self) -> ServerEvent | None:
        self._size = sum(map(len, self._rest))
        if not self._data and self._id is None and self._retry is None:
            self._event = ""
            return None
        event = ServerEvent(self._event or "message", b"\n".join(self._data), self._id, self._retry)
        self._event, self._data, self._id, self._retry = "", [], None, None
        return event
