"""Answers over HTTP: one JSON body where that is all, a stream of events where there is more to tell."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from starlette.types import Receive, Send

from dragoman.web.server_sent_events import STILL_HERE, EventWriter, Header, event_frame

JSON = b"application/json"
PATIENCE = 0.05
"""Seconds before a request is watched for its client going away: most are answered by then."""
SAID_EVERY = 8.0
"""Seconds after which a client that waits hears that its request is still under way."""


def framed(message: bytes) -> bytes:
    return event_frame(message, kind="message")


class PostReply:
    """The answer to one POST. It becomes a stream with the first thing that is told before the end."""

    def __init__(self, send: Send, headers: Iterable[Header] = (), *, can_stream: bool = True) -> None:
        self.send = self._send = send
        self.headers: list[Header] = [*headers]
        self.can_stream = can_stream
        self._events: EventWriter | None = None

    async def tell(self, message: bytes) -> bool:
        """False when the client takes no stream."""
        return await self._put(framed(message))

    async def keep_alive(self) -> None:
        await self._put(STILL_HERE)

    async def finish(self, message: bytes, status: int = 200) -> None:
        if self._events is not None:
            await self._events.finish(framed(message))
            return
        headers = [(b"content-type", JSON), (b"content-length", b"%d" % len(message)), *self.headers]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": message})

    async def finish_empty(self, status: int) -> None:
        headers = [(b"content-length", b"0"), *self.headers]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b""})

    async def _put(self, data: bytes) -> bool:
        if not self.can_stream:
            return False
        if self._events is None:
            self._events = EventWriter(self._send, self.headers)
        await self._events.write(data)
        return True


class DisconnectWatcher:
    """Watches a request that takes long: says that it is under way, and notices when its client has gone.

    In the 2026 era closing the request cancels it; in the 2025 era a client says so in words.
    """

    def __init__(
        self, slow: "SlowRequests", say: Callable[[], Awaitable[None]], receive: Receive, *, cancels: bool
    ) -> None:
        self._slow = slow
        self._say = say
        self._receive = receive
        self._cancels = cancels
        self._task: asyncio.Task[None] | None = None
        self._is_gone = False

    def __enter__(self) -> "DisconnectWatcher":
        self._owner = asyncio.current_task()
        self._slow.add(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """True, and so the end of it, when it was cancelled because its client left."""
        self._slow.remove(self)
        if self._task is not None:
            self._task.cancel()
        if self._is_gone and isinstance(error, asyncio.CancelledError) and self._owner is not None:
            return self._owner.uncancel() == 0
        return False

    def begin(self) -> None:
        # Held here and ended with the request: no task group, which would cost every quick call one.
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            try:
                async with asyncio.timeout(SAID_EVERY):
                    message = await self._receive()
            except TimeoutError:
                await self._say()
                continue
            if message["type"] == "http.disconnect":
                if self._cancels and self._owner is not None:
                    self._is_gone = True
                    self._owner.cancel()
                return


class SlowRequests:
    """Begins to watch requests that are under way for longer than `PATIENCE`.

    One timer for all of them, set for the oldest: most requests are over by then, and a timer for each would
    cost more than looking its tool up.
    """

    def __init__(self) -> None:
        self._begun: dict[DisconnectWatcher, float] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None

    def add(self, request: DisconnectWatcher) -> None:
        loop = asyncio.get_running_loop()
        self._begun[request] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE, self._look, loop)

    def remove(self, request: DisconnectWatcher) -> None:
        self._begun.pop(request, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for request, since in [*self._begun.items()]:
            if since + PATIENCE > loop.time():
                self._timer = loop.call_at(since + PATIENCE, self._look, loop)
                return
            del self._begun[request]
            request.begin()


class StandaloneStream:
    """The stream of a GET (2025) or of a subscription (2026): messages from any task, written in order."""

    def __init__(self, send: Send, headers: Iterable[Header] = ()) -> None:
        self._events = EventWriter(send, headers)
        self._opened = asyncio.Event()
        self._ended = asyncio.Event()

    async def open(self, first: bytes, listening: asyncio.Event) -> None:
        """Sends the first message once notifications are subscribed to, then keep-alives."""
        await listening.wait()
        await self._events.write(first)
        self._opened.set()
        await self._events.keep_alive()

    async def tell(self, message: bytes) -> None:
        """What comes before the first message waits for it."""
        await self._opened.wait()
        if not self._ended.is_set():
            await self._events.write(framed(message))

    def end(self) -> None:
        self._ended.set()

    async def ended(self) -> None:
        """Not before it was opened: a client is always answered."""
        await self._opened.wait()
        await self._ended.wait()

    async def close(self, last: bytes = b"") -> None:
        await self._events.finish(last)
