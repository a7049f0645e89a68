"""Streams of every door end within two seconds of the key, the user or the workspace behind them.

REST streams are found in the OpenAPI document and the console's in its routes, so that one that is added
later is opened here as well, or the test says that it does not know how.
"""

import asyncio
import inspect
import json
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.live import Live, open_service
from dragoman import Annotations
from dragoman.console.sessions import COOKIE
from mcp_endpoint.doors import LEGACY, META, MODERN
from patience import PATIENCE, deadline, until

pytestmark = pytest.mark.anyio

WITHIN = 2.0
SETTINGS: dict[str, Any] = {"multi_user": True, "allowed_networks": ("127.0.0.0/8",), "model": "scripted"}


@dataclass
class Someone:
    """A user whose message an agent works on, and the name of everything that has a stream."""

    workspace: str
    user: str
    key: str
    key_id: str
    names: dict[str, str]

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


async def made(live: Live, path: str, body: Any, **headers: str) -> Any:
    reply = await live.ask("POST", path, body, **headers)
    assert reply.status in (200, 201, 202), reply.body
    return reply.value


async def someone(live: Live, name: str, **key: Any) -> Someone:
    workspace = (await made(live, "/api/workspaces", {"name": name}))["id"]
    place = {"workspace": workspace}
    user = (await made(live, "/api/users", {"name": name, "role": "member", **place}))["id"]
    wish = {"name": "k", "user": user, "scopes": ["read", "call", "manage"], **place, **key}
    given = await made(live, "/api/keys", wish)
    bearer = {"Authorization": f"Bearer {given['key']}"}
    run = (await made(live, "/api/messages", {"text": "hold"}, **bearer))["run"]
    names = {"run": run["id"], "thread": run["thread"], "name": "wait_long"}
    return Someone(workspace, user, given["key"], given["id"], names)


# How each stream is opened

BODIES: dict[str, Any] = {"/api/call": {"tool": "wait_long"}, "/api/tools/{name}/call": {}}


@asynccontextmanager
async def opened(
    live: Live, method: str, path: str, headers: dict[str, str], data: Any = None
) -> AsyncGenerator[aiohttp.ClientResponse]:
    async with live.session.request(method, live.url + path, headers=headers, data=data) as response:
        assert response.status == 200, (path, response.status, await response.read())
        assert response.headers["Content-Type"].startswith("text/event-stream"), path
        await response.content.readline()
        yield response


async def rest_streams(live: Live, who: Someone, stack: AsyncExitStack) -> dict[str, aiohttp.ClientResponse]:
    document = (await live.ask("GET", "/api/openapi.json")).value
    streams: dict[str, aiohttp.ClientResponse] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}):
                filled = path.format(**who.names)
                body = None if method == "get" else json.dumps(BODIES[path])
                takes = {**who.bearer, "Accept": "text/event-stream", "Content-Type": "application/json"}
                stream = opened(live, method, filled, takes, body)
                streams[path] = await stack.enter_async_context(stream)
    return streams


async def mcp_streams(live: Live, who: Someone, stack: AsyncExitStack) -> dict[str, aiohttp.ClientResponse]:
    takes = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    hello = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    reply = await live.ask("POST", "/mcp", body, **who.bearer, **takes)
    session = {
        **who.bearer,
        "Accept": "text/event-stream",
        "Mcp-Session-Id": reply.headers["Mcp-Session-Id"],
    }
    wanted = {"notifications": {"toolsListChanged": True}, "_meta": META}
    listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": wanted}
    stateless = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
    standing = opened(live, "GET", "/mcp", session)
    listening = opened(live, "POST", "/mcp", {**who.bearer, **takes, **stateless}, json.dumps(listen))
    return {
        "GET /mcp": await stack.enter_async_context(standing),
        "subscriptions/listen": await stack.enter_async_context(listening),
    }


async def console_streams(
    live: Live, who: Someone, stack: AsyncExitStack
) -> dict[str, aiohttp.ClientResponse]:
    sessions = live.doors.console.sessions
    signed_in = Response()
    await sessions.begin(signed_in, who.key)
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    assert cookie.startswith(COOKIE)
    headers = {"Cookie": cookie}
    found = await sessions.find(Request({"type": "http", "headers": [(b"cookie", cookie.encode())]}))
    assert found is not None
    silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))  # a server that never answers
    entry = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"}
    forms: dict[str, dict[str, str]] = {
        "/transfer/apply": {"text": json.dumps({"mcpServers": {"silent": entry}})},
        "/tools/{name}/try": {"as": "json", "json": "{}"},
    }
    streams: dict[str, aiohttp.ClientResponse] = {}
    for route in live.doors.console._app.routes:
        if not isinstance(route, Route) or "event_stream(" not in inspect.getsource(route.endpoint):
            continue
        method = "POST" if route.path in forms else "GET"
        marks = {"X-CSRF-Token": found.csrf} if method == "POST" else {}
        stream = opened(
            live,
            method,
            route.path.format(**who.names),
            {**headers, **marks},
            forms.get(route.path),
        )
        streams[route.path] = await stack.enter_async_context(stream)
    return streams


# How a right ends


async def revoke(live: Live, who: Someone) -> None:
    reply = await live.ask("DELETE", f"/api/keys/{who.key_id}?workspace={who.workspace}")
    assert reply.status == 200


async def expire(live: Live, who: Someone) -> None:
    """The key was made to last this long."""
    await until(lambda: is_shut_out(live, who))


async def disable(live: Live, who: Someone) -> None:
    reply = await live.ask("PATCH", f"/api/users/{who.user}?workspace={who.workspace}", {"is_active": False})
    assert reply.status == 200


async def narrow(live: Live, who: Someone) -> None:
    reply = await live.ask(
        "PATCH", f"/api/users/{who.user}?workspace={who.workspace}", {"capabilities": ["mcp_other"]}
    )
    assert reply.status == 200


async def remove_user(live: Live, who: Someone) -> None:
    assert (await live.ask("DELETE", f"/api/users/{who.user}?workspace={who.workspace}")).status == 204


async def remove_workspace(live: Live, who: Someone) -> None:
    assert (await live.ask("DELETE", f"/api/workspaces/{who.workspace}")).status == 204


async def is_shut_out(live: Live, who: Someone) -> bool:
    return (await live.ask("GET", "/api/me", **who.bearer)).status == 401


ENDINGS: dict[Callable[[Live, Someone], Awaitable[None]], dict[str, Any]] = {
    revoke: {},
    expire: {"expires_in": 2},
    disable: {},
    narrow: {},
    remove_user: {},
    remove_workspace: {},
}


@asynccontextmanager
async def conversations(home: Path) -> AsyncGenerator[Live]:
    """A service whose agents do not answer before it ends."""
    held = asyncio.Event()

    async def think(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        await held.wait()
        yield "done"

    async def wait_long() -> None:
        """Waits until all is over."""
        await held.wait()

    async with open_service(home, **SETTINGS) as live:
        live.hub.add_tool(wait_long, annotations=Annotations(read_only=True))
        live.hub.models.register("scripted", FunctionModel(stream_function=think, model_name="scripted"))
        try:
            yield live
        finally:
            held.set()


@pytest.mark.slow
async def test_streams_of_every_door_end_when_their_right_does(tmp_path: Path) -> None:
    async with conversations(tmp_path) as live:
        for end, key in ENDINGS.items():
            who = await someone(live, end.__name__, **key)
            async with deadline(30), AsyncExitStack() as stack:
                streams = {
                    **await rest_streams(live, who, stack),
                    **await mcp_streams(live, who, stack),
                    **await console_streams(live, who, stack),
                }
                assert len(streams) >= 10
                kept = await stack.enter_async_context(
                    opened(live, "GET", "/api/events", {"Authorization": f"Bearer {live.token}"})
                )
                await end(live, who)
                ended_at = time.monotonic()

                async def seconds_until_end(response: aiohttp.ClientResponse, since: float) -> float:
                    await response.content.read()
                    return time.monotonic() - since

                took = await asyncio.gather(
                    *(seconds_until_end(stream, ended_at) for stream in streams.values())
                )
                late = {name: f"{after:.1f} s" for name, after in zip(streams, took, strict=True)}
                assert max(took) < WITHIN * PATIENCE, (end.__name__, late)
                assert not kept.content.at_eof(), "a stranger's ending ended another's stream"


async def test_streams_of_the_operator_end_when_the_service_has_another_token(tmp_path: Path) -> None:
    async with conversations(tmp_path) as live:
        old = {"Authorization": f"Bearer {live.token}"}
        async with deadline(20), opened(live, "GET", "/api/events", old) as stream:
            live.hub.settings.token_file.unlink()
            await stream.content.read()
        assert (await live.ask("GET", "/api/me", **old)).status == 401
        new = live.hub.settings.token_file.read_text().strip()
        assert new != live.token
        assert (await live.ask("GET", "/api/me", Authorization=f"Bearer {new}")).status == 200


async def test_streams_in_another_process_end_in_time_too(postgres_url: str, tmp_path: Path) -> None:
    """Two services on one database: what one revokes ends streams of the other."""
    settings: dict[str, Any] = {**SETTINGS, "database_url": postgres_url}
    async with (
        open_service(tmp_path / "one", **settings) as one,
        open_service(tmp_path / "two", **settings) as two,
    ):
        who = await someone(one, "ann")
        async with deadline(20), opened(two, "GET", "/api/events", who.bearer) as stream:
            await revoke(one, who)
            began = time.monotonic()
            await stream.content.read()
            assert time.monotonic() - began < WITHIN * PATIENCE
