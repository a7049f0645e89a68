"""Server-sent events: how they are written, and a response that ends when its reader does.

That the right to read may end is the guard's to see, for every answer that lasts.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, cast

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.scope import Caller
from dragoman.web.standing_streams import StandingStreams

KEEP_ALIVE = 15.0
STILL_HERE = b": still here\n\n"
Header = tuple[bytes, bytes]
_HEADERS: list[Header] = [(b"cache-control", b"no-store, no-transform"), (b"x-accel-buffering", b"no")]
_EVENTS = b"text/event-stream"
_EVENTS_AS_TEXT = b"text/event-stream; charset=utf-8"
"""For readers that take text for Latin-1 unless told; some MCP clients know only the plain type."""
_LISTENING = b": listening\n\n"
_COME_BACK = b"retry: 1000\n\n"
"""To readers of a service that stops: who answers in a second goes on after the mark that they heard last."""
Work = Callable[[], Coroutine[Any, Any, None]]


def event_frame(data: bytes, *, kind: str = "", mark: str = "") -> bytes:
    """One event of one line of data; a reader that comes again says the `mark` it heard last."""
    head = f"id: {mark}\n" if mark else ""
    head += f"event: {kind}\n" if kind else ""
    return b"%bdata: %b\n\n" % (head.encode(), data)


async def until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def until_first_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Runs them beside each other, begun in this order; when one has ended, the others are cancelled."""
    async with asyncio.TaskGroup() as tasks:
        parts = [tasks.create_task(work) for work in works]
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in parts:
            part.cancel()


class EventWriter:
    """One response of events. Its head goes out with `begin`, else with the first frame."""

    __slots__ = ("_headers", "_send", "has_begun")

    def __init__(self, send: Send, headers: Iterable[Header] = (), content_type: bytes = _EVENTS) -> None:
        self._send = send
        self._headers = [(b"content-type", content_type), *_HEADERS, *headers]
        self.has_begun = False

    async def begin(self) -> None:
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})

    async def write(self, frame: bytes) -> None:
        if not self.has_begun:
            await self.begin()
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})

    async def keep_alive(self, pause: float = KEEP_ALIVE) -> None:
        """A comment now and then: proxies and readers give up a line that is silent for long."""
        while True:
            await asyncio.sleep(pause)
            await self.write(STILL_HERE)

    async def finish(self, last: bytes = b"") -> None:
        """What has not begun stays unanswered."""
        if self.has_begun:
            await self._send({"type": "http.response.body", "body": last, "more_body": False})


class EventStream(Response):
    """One reader of `frames`, which it closes.

    It ends with whichever comes first: the frames, the reader or the service. `beside` is what has to run
    meanwhile; it ends with the stream, and the stream with it.
    """

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        streams: StandingStreams,
        caller: Caller,
        *,
        keep_alive: float = KEEP_ALIVE,
        beside: Work | None = None,
    ) -> None:
        super().__init__()
        self._frames = cast("AsyncGenerator[bytes]", frames)
        self._streams = streams
        self._caller = caller
        self._keep_alive = keep_alive
        self._beside = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.one_of(self._caller):
            await self._stream(receive, send)

    async def _stream(self, receive: Receive, send: Send) -> None:
        stopping = self._streams.stopping
        writer = EventWriter(send, content_type=_EVENTS_AS_TEXT)
        await writer.begin()
        # In this order: who reads the first comment may rely on hearing all that happens from then on.
        await until_first_ends(
            self._tell(writer),
            self._send_comments(writer),
            until_gone(receive),
            stopping.wait(),
            *([self._beside()] if self._beside is not None else ()),
        )
        await writer.finish(_COME_BACK if stopping.is_set() else b"")

    async def _tell(self, writer: EventWriter) -> None:
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await writer.write(frame)

    async def _send_comments(self, writer: EventWriter) -> None:
        await writer.write(_LISTENING)
        await writer.keep_alive(self._keep_alive)
