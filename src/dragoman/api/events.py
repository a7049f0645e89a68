"""What happens in the hub and in runs as frames of server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from dragoman.api.run_shapes import event_view
from dragoman.events import Event
from dragoman.hub import BoundHub
from dragoman.run import RunEvent
from dragoman.web.encoding import encode
from dragoman.web.guard import CALLER
from dragoman.web.server_sent_events import EventStream, Work, event_frame
from dragoman.web.standing_streams import STREAMS


def event_stream(request: Request, frames: AsyncIterator[bytes], beside: Work | None = None) -> Response:
    """Until the reader leaves, the end is told or the service stops."""
    return EventStream(frames, request.scope[STREAMS], request.scope[CALLER], beside=beside)


async def run_frames(events: AsyncIterator[RunEvent], *, of_thread: bool = False) -> AsyncIterator[bytes]:
    """Ids are numbers; in a thread, where runs follow one another, `<run>:<number>`."""
    async with aclosing(cast("AsyncGenerator[RunEvent]", events)) as told:
        async for event in told:
            mark = f"{event.root}:{event.number}" if of_thread else str(event.number)
            yield event_frame(encode(event_view(event)), kind=event.kind, mark=mark)


async def hub_frames(hub: BoundHub) -> AsyncIterator[bytes]:
    """From now on, as far as the caller may see it."""
    number = 0
    async with aclosing(cast("AsyncGenerator[Event]", hub.events())) as events:
        async for event in events:
            number += 1
            yield event_frame(encode(event), kind=event.kind, mark=str(number))
