"""Events as a stream (server-sent events): until the reader leaves or the service stops."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.api.encoding import encode
from dragoman.events import Event
from dragoman.hub import Hub
from dragoman.scope import Caller

KEEP_ALIVE = 15.0
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream(Response):
    """One reader. It ends with whichever comes first: the reader, the hub's events, or `stopping`."""

    def __init__(
        self, hub: Hub, caller: Caller, stopping: asyncio.Event, keep_alive: float = KEEP_ALIVE
    ) -> None:
        super().__init__()
        self._hub = hub
        self._caller = caller
        self._stopping = stopping
        self._keep_alive = keep_alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async with asyncio.TaskGroup() as tasks:
            # In this order: who reads the first comment may rely on hearing all that happens from then on.
            parts = [
                tasks.create_task(self._tell(send)),
                tasks.create_task(self._stay_awake(send)),
                tasks.create_task(_until_gone(receive)),
                tasks.create_task(self._stopping.wait()),
            ]
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                part.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        number = 0
        async with aclosing(cast("AsyncGenerator[Event]", self._hub.events(caller=self._caller))) as events:
            async for event in events:
                number += 1
                await send({"type": "http.response.body", "body": _framed(number, event), "more_body": True})

    async def _stay_awake(self, send: Send) -> None:
        comment = b": listening\n\n"
        while True:
            await send({"type": "http.response.body", "body": comment, "more_body": True})
            comment = b": still here\n\n"
            await asyncio.sleep(self._keep_alive)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _framed(number: int, event: Event) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, event.kind.encode(), encode(event))
