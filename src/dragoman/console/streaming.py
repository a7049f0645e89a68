"""Server-sent events to one page: until it is left, its session ends, or the service stops."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

Work = Callable[[], Coroutine[Any, Any, None]]
KEEP_ALIVE = 10.0  # seconds; a page that hears nothing for longer comes again
LOOK_EVERY = 2.0  # seconds until a session that has ended ends its streams
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Stream(Response):
    """Owns `frames` and closes them. `beside` is what has to run meanwhile; it ends with the stream."""

    def __init__(self, request: Request, frames: AsyncIterator[bytes], beside: Work | None = None) -> None:
        super().__init__()
        self._request = request
        self._frames = cast("AsyncGenerator[bytes]", frames)
        self._beside = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        stopping: asyncio.Event = self._request.app.state.stopping
        async with asyncio.TaskGroup() as tasks:
            parts: list[asyncio.Task[Any]] = [
                tasks.create_task(self._tell(send)),
                tasks.create_task(_stay_awake(send)),
                tasks.create_task(_until_gone(receive)),
                tasks.create_task(stopping.wait()),
                tasks.create_task(self._until_signed_out()),
            ]
            if self._beside is not None:
                parts.append(tasks.create_task(self._beside()))
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                part.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _until_signed_out(self) -> None:
        sessions = self._request.app.state.sessions
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if await sessions.find(self._request) is None:
                return


def framed(mark: str, data: bytes) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (mark.encode(), data)


async def _stay_awake(send: Send) -> None:
    while True:
        await send({"type": "http.response.body", "body": b": here\n\n", "more_body": True})
        await asyncio.sleep(KEEP_ALIVE)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
