"""What happens in the hub and in runs as frames of server-sent events, and who may go on reading them."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from dragoman.api.run_shapes import event_view
from dragoman.errors import DragomanError, Unauthenticated
from dragoman.events import Event
from dragoman.hub import BoundHub
from dragoman.run import RunEvent
from dragoman.web.encoding import encode
from dragoman.web.scopes import SCOPES
from dragoman.web.server_sent_events import EventStream, IsAdmitted, Work, always, event_frame

STOPPING = "dragoman.stopping"  # an event in a request's scope: the service ends


def event_stream(
    request: Request, hub: BoundHub, frames: AsyncIterator[bytes], beside: Work | None = None
) -> Response:
    """Until the reader leaves, the end is told, the key is revoked or the service stops."""
    stopping, is_admitted = request.scope[STOPPING], _admission_of(request, hub)
    return EventStream(frames, stopping, is_admitted=is_admitted, beside=beside)


def _admission_of(request: Request, hub: BoundHub) -> IsAdmitted:
    """Whether the key that opened this request still opens anything; the service's own token always does."""
    if SCOPES not in request.scope:
        return always
    token = request.headers.get("authorization", "").partition(" ")[2].strip()

    async def is_admitted() -> bool:
        try:
            await hub.authenticator.admit(token)
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
            yield event_frame(encode(event_view(event)), kind=event.kind, mark=mark)


async def hub_frames(hub: BoundHub) -> AsyncIterator[bytes]:
    """From now on, as far as the caller may see it."""
    number = 0
    async with aclosing(cast("AsyncGenerator[Event]", hub.events())) as events:
        async for event in events:
            number += 1
            yield event_frame(encode(event), kind=event.kind, mark=str(number))
