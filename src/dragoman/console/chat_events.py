"""What happens in a thread as frames for its page: at once, and then no more often than a screen can show.

Words that follow one another become one event with the number of the last: resumed after it, nothing is lost
and nothing told twice.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from dragoman.run import RunEvent
from dragoman.web.server_sent_events import event_frame

_FRAME = 0.01  # seconds; the journal tells words about every 25 ms, and they are passed on at once


class ThreadFrames:
    """`hear` and `tell` run beside each other, in tasks of the stream they belong to."""

    def __init__(self, events: AsyncIterator[RunEvent]) -> None:
        self._events = cast("AsyncGenerator[RunEvent]", events)
        self._heard: asyncio.Queue[RunEvent] = asyncio.Queue(maxsize=1000)

    async def hear(self) -> None:
        async with aclosing(self._events) as told:
            async for event in told:
                await self._heard.put(event)

    async def tell(self) -> AsyncIterator[bytes]:
        while True:
            waiting = [await self._heard.get()]
            while not self._heard.empty():
                waiting.append(self._heard.get_nowait())
            yield b"".join(_framed(event) for event in _joined(waiting))
            await asyncio.sleep(_FRAME)


def _joined(events: list[RunEvent]) -> list[RunEvent]:
    joined: list[RunEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        if last is not None and _goes_on(last, event):
            text = last.data["delta"] + event.data["delta"]
            joined[-1] = replace(event, data={**event.data, "delta": text})
        else:
            joined.append(event)
    return joined


def _goes_on(last: RunEvent, event: RunEvent) -> bool:
    is_text = last.kind == event.kind == "text" and last.run == event.run
    return is_text and last.data.get("turn") == event.data.get("turn")


def _framed(event: RunEvent) -> bytes:
    facts = {
        "root": event.root,
        "number": event.number,
        "run": event.run,
        "agent": event.agent,
        "kind": event.kind,
        "data": dict(event.data),
    }
    data = json.dumps(facts, ensure_ascii=False, separators=(",", ":"), default=str).encode()
    return event_frame(data, mark=f"{event.root}:{event.number}")
