"""The same bearer for OpenAPI services and for the old SSE transport."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from oauth.journey import open_browser, open_scene
from servers.authorization_server import AuthorizationServer

pytestmark = pytest.mark.anyio


class Shop:
    """A service with a document, whose operations want a token."""

    def __init__(self, issuer: AuthorizationServer) -> None:
        self.issuer = issuer
        self.origin = ""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/openapi.json", self._document)
        app.router.add_get("/orders", self._orders)
        app.router.add_get("/.well-known/oauth-protected-resource", self._resource)
        return app

    def _is_known(self, request: web.Request) -> bool:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return self.issuer.accepts(token, self.origin)

    async def _resource(self, request: web.Request) -> web.Response:
        return web.json_response({"resource": self.origin, "authorization_servers": [self.issuer.issuer]})

    async def _document(self, request: web.Request) -> web.Response:
        if not self._is_known(request):
            return web.Response(status=401)
        operation: dict[str, Any] = {
            "operationId": "orders",
            "responses": {"200": {"description": "all"}},
            "security": [{"oauth": []}],
        }
        schemes = {"oauth": {"type": "http", "scheme": "bearer"}}
        return web.json_response(
            {
                "openapi": "3.1.0",
                "info": {"title": "Shop", "version": "1"},
                "servers": [{"url": "/"}],
                "paths": {"/orders": {"get": operation}},
                "components": {"securitySchemes": schemes},
            }
        )

    async def _orders(self, request: web.Request) -> web.Response:
        return web.json_response(["one"]) if self._is_known(request) else web.Response(status=401)


class Radio(Shop):
    """An MCP server of the old SSE transport with one tool. The SDK's own leaves streams unclosed."""

    def app(self) -> web.Application:
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        app = web.Application()
        app.router.add_get("/sse", self._stream)
        app.router.add_post("/messages", self._take)
        app.router.add_get("/.well-known/oauth-protected-resource", self._resource)
        return app

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if not self._is_known(request):
            return web.Response(status=401)
        answers = self._answers = asyncio.Queue()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /messages\n\n")
        while True:
            await response.write(f"event: message\ndata: {json.dumps(await answers.get())}\n\n".encode())

    async def _take(self, request: web.Request) -> web.Response:
        if not self._is_known(request):
            return web.Response(status=401)
        message = await request.json()
        answer: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "radio", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "x"}]},
            "ping": {},
        }
        if "id" in message:
            method, known = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
            refusal = {"error": {"code": -32601, "message": "no such method"}}
            found = {"result": answer[method]} if method in answer else refusal
            self._answers.put_nowait({**known, **found})
        return web.Response(status=202)


Peer = TypeVar("Peer", bound=Shop)


@asynccontextmanager
async def open_peer(shop: Peer) -> AsyncGenerator[Peer]:
    runner = web.AppRunner(shop.app(), access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        shop.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield shop
    finally:
        await runner.cleanup()


@pytest.mark.slow
async def test_an_openapi_service_is_authorised_used_renewed_and_revoked(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scene(tmp_path, database_url) as scene, open_peer(Shop(scene.issuer)) as shop:
        hub, issuer = scene.hub, scene.issuer
        view = await hub.connectors.add("notes", openapi=shop.origin, auth={"kind": "oauth"})
        assert (view.status.state, view.status.hint) == ("needs_auth", 'hub.credentials.authorize("notes")')
        async with open_browser() as browser:
            page = await browser.follow(await browser.press(await scene.link()))
        assert page.status == 200, page.text
        assert (await hub.call("mcp_notes_orders", {})).ok
        issuer.revoke_all()
        assert (await hub.call("mcp_notes_orders", {})).ok
        assert issuer.counts["refresh_token"] == 1
        view = await hub.credentials.get("notes")
        assert view.expires_at
        assert view.expires_at > datetime.now(UTC) + timedelta(minutes=50)
        await hub.credentials.remove("notes")
        output = await hub.call("mcp_notes_orders", {})
        assert output.error
        assert output.error.code == "needs_auth"


async def test_the_old_sse_transport_is_authorised_and_renewed(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene, open_peer(Radio(scene.issuer)) as radio:
        await scene.hub.connectors.add("notes", url=f"{radio.origin}/sse", auth={"kind": "oauth"})
        page = await scene.authorise()
        assert page.status == 200, page.text
        assert (await scene.hub.call("mcp_notes_echo", {"text": "x"})).ok
        scene.issuer.revoke_all()
        assert (await scene.hub.call("mcp_notes_echo", {"text": "x"})).ok
        assert scene.issuer.counts["refresh_token"] == 1
        scene.issuer.revoke_all()
        await scene.hub.connectors.disable("notes")
        await scene.hub.connectors.enable("notes")
        view = await scene.hub.connectors.connect("notes")
        assert view.status.state == "connected", "the standing stream is opened with a renewed token too"
