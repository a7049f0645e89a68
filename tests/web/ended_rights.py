"""Somebody whose right ends: their streams at the doors of a service, and the ways in which it ends.

REST streams are found in the OpenAPI document, so that one that is added later is opened as well.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp

from api.live import ServiceClient
from mcp_endpoint.doors import LEGACY, META, MODERN
from patience import until


@dataclass
class Someone:
    """A user whose message an agent works on, and the name of everything that has a stream."""

    workspace: str
    user: str
    key: str
    key_id: str
    names: dict[str, str]
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    """With which the tool that has a name takes its time."""

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


async def made(live: ServiceClient, path: str, body: Any, **headers: str) -> Any:
    reply = await live.ask("POST", path, body, **headers)
    assert reply.status in (200, 201, 202), reply.body
    return reply.value


async def someone(live: ServiceClient, name: str, library: str = "", **key: Any) -> Someone:
    """`library` is the address of a server with resources. All that takes time is done by another key."""
    workspace = (await made(live, "/api/workspaces", {"name": name}))["id"]
    place = {"workspace": workspace}
    user = (await made(live, "/api/users", {"name": name, "role": "member", **place}))["id"]
    wish = {"name": "k", "user": user, "scopes": ["read", "call", "manage"], **place}
    bearer = {"Authorization": f"Bearer {(await made(live, '/api/keys', wish))['key']}"}
    run = (await made(live, "/api/messages", {"text": "hold"}, **bearer))["run"]
    names = {"run": run["id"], "thread": run["thread"], "name": "wait_long"}
    if library:
        await made(live, "/api/connectors", {"name": "books", "url": library}, **bearer)
        names["resource"] = quote("books+book:///one", safe="")
    given = await made(live, "/api/keys", {**wish, **key})
    return Someone(workspace, user, given["key"], given["id"], names)


# How each stream is opened


@asynccontextmanager
async def opened(
    live: ServiceClient, method: str, path: str, headers: dict[str, str], data: Any = None
) -> AsyncGenerator[aiohttp.ClientResponse]:
    async with live.session.request(method, live.url + path, headers=headers, data=data) as response:
        assert response.status == 200, (path, response.status, await response.read())
        assert response.headers["Content-Type"].startswith("text/event-stream"), path
        await response.content.readline()
        yield response


async def rest_streams(
    live: ServiceClient, who: Someone, stack: AsyncExitStack
) -> dict[str, aiohttp.ClientResponse]:
    document = (await live.ask("GET", "/api/openapi.json")).value
    streams: dict[str, aiohttp.ClientResponse] = {}
    call = {"tool": who.names["name"], "arguments": who.arguments}
    bodies = {"/api/call": call, "/api/tools/{name}/call": {"arguments": who.arguments}}
    queries = {"/api/resources/updates": "?uri={resource}"}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}):
                filled = (path + queries.get(path, "")).format(**who.names)
                body = None if method == "get" else json.dumps(bodies[path])
                takes = {**who.bearer, "Accept": "text/event-stream", "Content-Type": "application/json"}
                stream = opened(live, method, filled, takes, body)
                streams[path] = await stack.enter_async_context(stream)
    return streams


async def mcp_streams(
    live: ServiceClient, who: Someone, stack: AsyncExitStack
) -> dict[str, aiohttp.ClientResponse]:
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


# How a right ends


async def revoke(live: ServiceClient, who: Someone) -> None:
    reply = await live.ask("DELETE", f"/api/keys/{who.key_id}?workspace={who.workspace}")
    assert reply.status == 200


async def expire(live: ServiceClient, who: Someone) -> None:
    """The key was made to last this long."""
    await until(lambda: is_shut_out(live, who))


async def disable(live: ServiceClient, who: Someone) -> None:
    reply = await live.ask("PATCH", f"/api/users/{who.user}?workspace={who.workspace}", {"is_active": False})
    assert reply.status == 200


async def narrow(live: ServiceClient, who: Someone) -> None:
    reply = await live.ask(
        "PATCH", f"/api/users/{who.user}?workspace={who.workspace}", {"capabilities": ["mcp_other"]}
    )
    assert reply.status == 200


async def remove_user(live: ServiceClient, who: Someone) -> None:
    assert (await live.ask("DELETE", f"/api/users/{who.user}?workspace={who.workspace}")).status == 204


async def remove_workspace(live: ServiceClient, who: Someone) -> None:
    assert (await live.ask("DELETE", f"/api/workspaces/{who.workspace}")).status == 204


async def is_shut_out(live: ServiceClient, who: Someone) -> bool:
    return (await live.ask("GET", "/api/me", **who.bearer)).status == 401


async def seconds_until_end(streams: Iterable[aiohttp.ClientResponse], since: float) -> list[float]:
    async def ended(stream: aiohttp.ClientResponse) -> float:
        await stream.content.read()
        return time.monotonic() - since

    return await asyncio.gather(*map(ended, streams))
