"""A hub of this process behind the same REST door, without sockets. Imports the whole stack.

The hub lives in one task of a loop in another thread, so that Ctrl-C ends a wait at once.
"""

import asyncio
import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any
from urllib.parse import unquote

from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import Message, Receive

from dragoman.api import Api
from dragoman.cli.door import EVENTS, Door, DoorResponse, RunningService, accepted, with_query
from dragoman.hub import Hub
from dragoman.scope import LOCAL_CALLER
from dragoman.settings import Settings
from dragoman.telemetry.logs import configure_logging
from dragoman.telemetry.redaction import Redactor
from dragoman.web.guard import CALLER


@contextmanager
def open_in_process(settings: Settings) -> Generator[Door]:
    redactor = Redactor()
    configure_logging(settings.log_level, settings.log_json, redactor)
    opened = Hub(settings, redactor=redactor)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as hub:
        yield InProcessDoor(portal, portal.call(Api, hub))


class InProcessDoor:
    service: RunningService | None = None

    def __init__(self, portal: BlockingPortal, api: Api) -> None:
        self._portal = portal
        self._api = api

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return accepted(self._portal.call(exchange, self._api, method, path, body, query)).value

    def fetch(self, path: str, **query: Any) -> DoorResponse:
        return accepted(self._portal.call(exchange, self._api, "GET", path, None, query))

    @contextmanager
    def follow(self, path: str, after: int = 0, body: Any = None, **query: Any) -> Generator[Iterator[bytes]]:
        sent: SimpleQueue[Message | None] = SimpleQueue()
        task = self._portal.start_task_soon(_stream, self._api, with_query(path, query), after, body, sent)
        task.add_done_callback(lambda _: sent.put(None))
        try:
            start = sent.get()
            status = 503 if start is None else start["status"]
            if status >= 400:
                accepted(DoorResponse(status, "", b"".join(_bodies(sent))))
            yield _lines(sent)
        finally:
            task.cancel()


async def exchange(api: Api, method: str, path: str, body: Any, query: Mapping[str, Any]) -> DoorResponse:
    """One request to an ASGI application."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await api(_scope(method, with_query(path, query)), _received(body), send)
    kinds = dict(sent[0]["headers"])
    return DoorResponse(
        sent[0]["status"],
        kinds.get(b"content-type", b"").decode(),
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


async def _stream(api: Api, path: str, after: int, body: Any, sent: "SimpleQueue[Message | None]") -> None:
    """A request whose answer goes on until it ends or this task is cancelled."""

    async def send(message: Message) -> None:
        sent.put(message)

    scope = _scope("GET" if body is None else "POST", path)
    scope["headers"].append((b"accept", EVENTS.encode()))
    if after:
        scope["headers"].append((b"last-event-id", str(after).encode()))
    await api(scope, _received(body), send)


def _received(body: Any) -> Receive:
    """The request, and then nothing: who asks stays until the answer has ended."""
    data = b"" if body is None else json.dumps(body).encode()
    asked: list[Message] = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> Message:
        return asked.pop() if asked else await asyncio.get_running_loop().create_future()

    return receive


def _bodies(sent: "SimpleQueue[Message | None]") -> Iterator[bytes]:
    while (message := sent.get()) is not None:
        yield message.get("body", b"")


def _lines(sent: "SimpleQueue[Message | None]") -> Iterator[bytes]:
    rest = b""
    for body in _bodies(sent):
        *lines, rest = (rest + body).split(b"\n")
        yield from (line + b"\n" for line in lines)


def _scope(method: str, address: str) -> dict[str, Any]:
    path, _, query = address.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"dragoman-hints", b"command")],
        "server": ("127.0.0.1", 0),
        "client": ("127.0.0.1", 0),
        CALLER: LOCAL_CALLER,
    }
