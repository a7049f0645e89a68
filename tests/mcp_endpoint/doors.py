"""A hub behind its MCP door on a real socket, guarded as in the service, in the test's own loop."""

import itertools
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman import Hub
from dragoman.mcp_endpoint import McpEndpoint
from dragoman.scope import LOCAL_CALLER, Caller
from dragoman.web.guard import Guard
from patience import deadline, patient
from servers.hubs import open_hub
from servers.ports import listen, served

TOKEN = "drg_test"
is_token = TOKEN.encode().__eq__
MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ids = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        return [json.loads(line[6:]) for line in self.body.decode().splitlines() if line.startswith("data: ")]


class People:
    """Stands where the guard of many users will: a header says who asks."""

    def __init__(self, app: ASGIApp, callers: Mapping[str, Caller]) -> None:
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/health":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        for name, value in scope["headers"]:
            if name == b"x-test-caller":
                scope["dragoman.caller"] = self._callers[value.decode()]
        await self._app(scope, receive, send)


class McpClient:
    """A raw client of both eras: says exactly what a test wants said."""

    def __init__(self, url: str, session: aiohttp.ClientSession, token: str = TOKEN) -> None:
        self.url = url
        self.http = session
        self.token = token

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Headers are given with underscores; one that is empty is left out."""
        given = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        given = {name: value for name, value in given.items() if value}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        async with self.http.request(method, self.url + path, data=data, headers=given) as response:
            return Reply(response.status, response.headers, await response.read())

    async def ask(
        self,
        method: str,
        params: Any = None,
        path: str = "/mcp",
        meta: Mapping[str, Any] = META,
        **headers: str,
    ) -> Reply:
        """One request of the 2026 era."""
        params = {**(params or {}), "_meta": meta}
        named = params.get("name") or params.get("uri")
        headers = {
            "MCP_Protocol_Version": MODERN,
            "Mcp_Method": method,
            **({"Mcp_Name": named} if named else {}),
            **headers,
        }
        body = {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}
        return await self.send("POST", path, body, **headers)

    async def open(
        self, path: str = "/mcp", capabilities: Mapping[str, Any] | None = None, **headers: str
    ) -> "Session":
        params = {
            "protocolVersion": LEGACY,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        reply = await self.send("POST", path, body, **headers)
        assert reply.status == 200, reply.body
        return Session(self, path, reply, {**headers, "Mcp_Session_Id": reply.headers["Mcp-Session-Id"]})

    @asynccontextmanager
    async def client(self, path: str = "/mcp", mode: Any = "auto", **options: Any) -> AsyncGenerator[Client]:
        """The SDK's own client."""
        async with httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {self.token}"}, timeout=patient(30)
        ) as http:
            transport = streamable_http_client(self.url + path, http_client=http)
            async with Client(transport, mode=mode, **options) as client:
                yield client


class Door(McpClient):
    """The endpoint is in this process."""

    def __init__(self, hub: Hub, endpoint: McpEndpoint, url: str, session: aiohttp.ClientSession) -> None:
        super().__init__(url, session)
        self.hub = hub
        self.endpoint = endpoint


class Session:
    """One session of the 2025 era."""

    def __init__(self, door: McpClient, path: str, opened: Reply, headers: dict[str, str]) -> None:
        self.door = door
        self.path = path
        self.opened = opened
        self.headers = {**headers, "MCP_Protocol_Version": LEGACY}

    def at(self, door: McpClient) -> "Session":
        """The same session, at another node."""
        return Session(door, self.path, self.opened, self.headers)

    async def ask(self, method: str, params: Any = None, request_id: Any = None, **headers: str) -> Reply:
        body = {"jsonrpc": "2.0", "id": next(_ids) if request_id is None else request_id, "method": method}
        body |= {} if params is None else {"params": params}
        return await self.door.send("POST", self.path, body, **{**self.headers, **headers})

    async def tell(self, method: str, params: Any = None) -> Reply:
        body = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
        return await self.door.send("POST", self.path, body, **self.headers)

    @asynccontextmanager
    async def posted(self, method: str, params: Any, request_id: Any = 5) -> AsyncGenerator["News"]:
        """A request whose answer is a stream."""
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        async with _stream(self.door, "POST", self.path, body, self.headers) as news:
            yield news

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["News"]:
        async with _stream(self.door, "GET", self.path, None, self.headers) as news:
            yield news


class News:
    """What comes over a standing stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.honoured: Mapping[str, Any] = {}

    async def next(self, within: float = 5.0) -> Any:
        async with deadline(within):
            while line := await self.response.content.readline():
                if line.startswith(b"data: "):
                    return json.loads(line[6:])
        raise EOFError

    async def is_silent(self, seconds: float = 0.4) -> bool:
        try:
            await self.next(seconds)
        except TimeoutError:
            return True
        return False


@asynccontextmanager
async def _stream(
    door: McpClient, method: str, path: str, body: Any, headers: Mapping[str, str]
) -> AsyncGenerator[News]:
    given = {"Authorization": f"Bearer {door.token}", "Accept": "text/event-stream"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body).encode()
    if data:
        given |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with door.http.request(method, door.url + path, data=data, headers=given) as response:
        assert response.status == 200, await response.read()
        if method == "GET":
            await response.content.readline()  # it listens from here on
        yield News(response)


@asynccontextmanager
async def subscribed(
    door: McpClient,
    path: str = "/mcp",
    capabilities: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    **wanted: Any,
) -> AsyncGenerator[News]:
    """subscriptions/listen of the 2026 era, acknowledged."""
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities or {}}
    params = {"notifications": wanted, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": "listen-1", "method": "subscriptions/listen", "params": params}
    headers = {**(headers or {}), "MCP_Protocol_Version": MODERN, "Mcp_Method": "subscriptions/listen"}
    async with _stream(door, "POST", path, body, headers) as news:
        first = await news.next()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "listen-1"
        news.honoured = first["params"]["notifications"]
        yield news


@asynccontextmanager
async def open_door(
    home: Path,
    *,
    callers: Mapping[str, Caller] | None = None,
    door: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Door]:
    async with open_hub(home, **settings) as hub:
        endpoint = McpEndpoint(hub, **(door or {}))
        guarded = Guard(People(endpoint, callers or {}), is_token=is_token, operator=LOCAL_CALLER)
        async with serving(guarded, endpoint) as url, aiohttp.ClientSession() as session:
            yield Door(hub, endpoint, url, session)


@asynccontextmanager
async def serving(app: Any, endpoint: McpEndpoint) -> AsyncGenerator[str]:
    listener = listen()
    config = uvicorn.Config(
        app, http="httptools", lifespan="off", log_config=None, timeout_graceful_shutdown=2
    )
    async with served(uvicorn.Server(config), listener):
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            endpoint.stop()


def numbered(count: int) -> Iterator[str]:
    return (f"tool_{number:03}" for number in range(count))
