"""A hub of this process behind the same REST door, without sockets. Imports the whole stack.

The hub lives in one task of a loop in another thread, so that Ctrl-C ends a wait at once.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlencode

from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import Message

from dragoman.api import Api
from dragoman.cli.door import Answer, Door, Service, accepted
from dragoman.hub import Hub
from dragoman.settings import Settings
from dragoman.telemetry.logs import configure_logging
from dragoman.telemetry.redaction import Redactor


@contextmanager
def open_in_process(settings: Settings) -> Generator[Door]:
    redactor = Redactor()
    configure_logging(settings.log_level, settings.log_json, redactor)
    opened = Hub(settings, redactor=redactor)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as hub:
        yield InProcessDoor(portal, portal.call(Api, hub))


class InProcessDoor:
    service: Service | None = None

    def __init__(self, portal: BlockingPortal, api: Api) -> None:
        self._portal = portal
        self._api = api

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return accepted(self._portal.call(exchange, self._api, method, path, body, query)).value

    def fetch(self, path: str, **query: Any) -> Answer:
        return accepted(self._portal.call(exchange, self._api, "GET", path, None, query))


async def exchange(api: Api, method: str, path: str, body: Any, query: Mapping[str, Any]) -> Answer:
    """One request to an ASGI application."""
    data = b"" if body is None else json.dumps(body).encode()
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    given = {name: value for name, value in query.items() if value is not None}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": urlencode(given).encode(),
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        "server": ("127.0.0.1", 0),
        "client": ("127.0.0.1", 0),
    }
    await api(scope, receive, send)
    kinds = dict(sent[0]["headers"])
    return Answer(
        sent[0]["status"],
        kinds.get(b"content-type", b"").decode(),
        b"".join(message.get("body", b"") for message in sent[1:]),
    )
