"""Events as streams (server-sent events): until the reader leaves, the end is told or the service stops."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.api.encoding import encode
from dragoman.api.run_shapes import event_view
from dragoman.api.scopes import SCOPES
from dragoman.errors import DragomanError, Unauthenticated
from dragoman.events import Event
from dragoman.hub import Hub
from dragoman.run import RunEvent
from dragoman.scope import Caller

KEEP_ALIVE = 15.0
LOOK_EVERY = 2.0  # seconds until a key that was revoked ends its streams
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
IsAdmitted = Callable[[], Awaitable[bool]]


async def _always() -> bool:
    return True


class Stream(Response):
    """One reader of `frames`, which it closes.

    It ends with whichever comes first: the frames, the reader, `stopping`, or the right to read.
    """

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        stopping: asyncio.Event,
        keep_alive: float = KEEP_ALIVE,
        is_admitted: IsAdmitted = _always,
    ) -> None:
        super().__init__()
        self._frames = cast("AsyncGenerator[bytes]", frames)
        self._stopping = stopping
        self._keep_alive = keep_alive
        self._is_admitted = is_admitted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async with asyncio.TaskGroup() as tasks:
            # In this order: who reads the first comment may rely on hearing all that happens from then on.
            parts = [
                tasks.create_task(self._tell(send)),
                tasks.create_task(self._stay_awake(send)),
                tasks.create_task(_until_gone(receive)),
                tasks.create_task(self._stopping.wait()),
                tasks.create_task(self._until_refused()),
            ]
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                part.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _stay_awake(self, send: Send) -> None:
        comment = b": listening\n\n"
        while True:
            await send({"type": "http.response.body", "body": comment, "more_body": True})
            comment = b": still here\n\n"
            await asyncio.sleep(self._keep_alive)

    async def _until_refused(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if not await self._is_admitted():
                return


class EventStream(Stream):
    """What happens in the hub from now on, as far as the caller may see it."""

    def __init__(
        self,
        hub: Hub,
        caller: Caller,
        stopping: asyncio.Event,
        keep_alive: float = KEEP_ALIVE,
        is_admitted: IsAdmitted = _always,
    ) -> None:
        super().__init__(_hub_frames(hub, caller), stopping, keep_alive, is_admitted)


def admission_of(request: Request, hub: Hub) -> IsAdmitted:
    """Whether the key that opened this request still opens anything; the service's own token always does."""
    if SCOPES not in request.scope:
        return _always
    token = request.headers.get("authorization", "").partition(" ")[2].strip()

    async def is_admitted() -> bool:
        try:
            await hub.entrance.admit(token)
        except Unauthenticated:
            return False
        except DragomanError:
            return True  # nobody can be asked now, which is no reason to refuse
        return True

    return is_admitted


async def run_frames(events: AsyncIterator[RunEvent], *, of_thread: bool = False) -> AsyncIterator[bytes]:
    """Ids are numbers; in a thread, where runs follow one another, `<run>:<number>`."""
    async with aclosing(cast("AsyncGenerator[RunEvent]", events)) as told:
        async for event in told:
            mark = f"{event.root}:{event.number}" if of_thread else str(event.number)
            yield _framed(mark, event.kind, encode(event_view(event)))


async def _hub_frames(hub: Hub, caller: Caller) -> AsyncIterator[bytes]:
    number = 0
    async with aclosing(cast("AsyncGenerator[Event]", hub.events(caller=caller))) as events:
        async for event in events:
            number += 1
            yield _framed(str(number), event.kind, encode(event))


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _framed(mark: str, kind: str, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (mark.encode(), kind.encode(), data)
