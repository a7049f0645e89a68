"""A hub behind its REST door on a real socket, in the test's own loop."""

import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from dragoman import Hub
from dragoman.api import Api
from dragoman.server import Doors, build_app
from dragoman.web.http_server import ConnectionLimits, HttpServer
from dragoman.web.service_token import get_or_make_token
from servers.hubs import open_hub
from servers.ports import listen, served


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Any
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


class ServiceClient:
    """Who asks a service, in whichever process that is."""

    def __init__(self, url: str, session: aiohttp.ClientSession, token: str) -> None:
        self.url = url
        self.session = session
        self.token = token

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """With the token unless `Authorization` is given; bytes are sent as they are."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        data = io.BytesIO(raw) if body is not None else None
        async with self.session.request(method, self.url + path, data=data, headers=headers) as response:
            return Reply(response.status, response.headers, await response.read())

    async def call(self, tool: str, **arguments: Any) -> Any:
        reply = await self.ask("POST", "/api/call", {"tool": tool, "arguments": arguments})
        assert reply.status == 200
        return reply.value


class Live(ServiceClient):
    """The service is in this process."""

    def __init__(self, hub: Hub, url: str, session: aiohttp.ClientSession, doors: Doors) -> None:
        super().__init__(url, session, get_or_make_token(hub.settings.token_file))
        self.hub = hub
        self.doors = doors


@asynccontextmanager
async def open_service(
    home: Path, *, max_body: int = 16 * 1024 * 1024, **settings: Any
) -> AsyncGenerator[Live]:
    async with open_hub(home, **settings) as hub:
        doors = Doors(hub, Api(hub, max_body=max_body))
        listener = listen()
        server = HttpServer(build_app(hub, doors), ConnectionLimits.of(hub.settings), last_requests=2)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with served(server, listener):
            try:
                async with aiohttp.ClientSession() as session:
                    yield Live(hub, url, session, doors)
            finally:
                doors.stop()
