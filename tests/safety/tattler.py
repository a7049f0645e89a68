"""A server that blurts out whatever secret it is told: in its failures, its refusals, its errors.

An MCP server at `/mcp`, an OpenAPI service at `/service`, an authorisation server that gives no token.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from aiohttp import BasicAuth, web

from servers import protocol

WRONG = "wrong"
_TEXT = {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}}
_TOOLS = [
    {"name": name, "description": name, "inputSchema": _TEXT, "annotations": {"readOnlyHint": name != "note"}}
    for name in ("whoami", "note", "fail", "fault", "crash", "refuse", "odd")
]


class Tattler:
    """`seen` holds all that reached it: the proof that the secrets were used."""

    def __init__(self) -> None:
        self.origin = ""
        self.seen: list[str] = []

    def _told(self, request: web.Request) -> str:
        """Every secret of a request, also in the spellings in which servers write them back."""
        headers = request.headers
        secret = [headers.get("Authorization", ""), headers.get("X-Secret", ""), request.query.get("key", "")]
        words = [
            *secret,
            *(quote(word) for word in secret),
            json.dumps(secret),
            request.rel_url.raw_query_string,
        ]
        if secret[0].startswith("Basic "):
            words.append(BasicAuth.decode(secret[0]).password)
        self.seen.append(" ".join(words))
        return " ".join(words)

    async def mcp(self, request: web.Request) -> web.Response:
        told = self._told(request)
        if WRONG in request.query or not (request.headers.keys() & {"Authorization", "X-Secret"}):
            plain = told.encode("ascii", "replace").decode().replace('"', "'")
            challenge = f'Bearer error="invalid_token", error_description="{plain}"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge}, text=f"no {told}")
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        if message["method"] == "server/discover":
            return web.json_response(protocol.answer(message["id"], protocol.discover()))
        if message["method"] == "tools/list":
            result = protocol.tools_list(_TOOLS, None, 0, is_modern=True)
            return web.json_response(protocol.answer(message["id"], result))
        if message["method"] != "tools/call":
            return web.json_response(protocol.error(message["id"], -32601, "no such method"), status=404)
        return self._called(message["id"], message["params"]["name"], told)

    def _called(self, request_id: Any, tool: str, told: str) -> web.Response:
        if tool == "fault":
            return web.json_response(protocol.error(request_id, -32603, f"no: {told}", {"headers": told}))
        if tool == "crash":
            return web.Response(status=500, text=f"Traceback: {told}")
        if tool == "refuse":
            return web.Response(status=403, text=f"you are {told}", headers={"X-Reason": quote(told)})
        if tool == "odd":
            return web.Response(text=f"this is no JSON: {told}")
        text = told if tool in ("whoami", "fail") else "noted"
        result = {"content": [{"type": "text", "text": text}], "isError": tool == "fail"}
        return web.json_response(protocol.answer(request_id, protocol.stamped(result)))

    async def document(self, request: web.Request) -> web.Response:
        paths = {
            f"/{name}": {"get": {"operationId": name, "responses": {"200": {"description": "ok"}}}}
            for name in ("look", "break", "hang_up")
        }
        info = {"title": "Tattler", "version": "1"}
        servers = [{"url": f"{self.origin}/service"}]
        return web.json_response({"openapi": "3.0.3", "info": info, "servers": servers, "paths": paths})

    async def service(self, request: web.Request) -> web.Response:
        told = self._told(request)
        if request.path.endswith("break"):
            return web.json_response({"error": told}, status=500)
        if request.path.endswith("hang_up"):
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"ok": True})

    async def metadata(self, request: web.Request) -> web.Response:
        facts: dict[str, Any] = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
        return web.json_response(facts)

    async def resource(self, request: web.Request) -> web.Response:
        facts = {"resource": f"{self.origin}/mcp", "authorization_servers": [self.origin]}
        return web.json_response(facts)

    async def token(self, request: web.Request) -> web.Response:
        form = await request.post()
        told = f"{self._told(request)} {dict(form)}"
        self.seen.append(told)
        return web.json_response({"error": "invalid_client", "error_description": told}, status=401)


@asynccontextmanager
async def open_tattler() -> AsyncGenerator[Tattler]:
    tattler = Tattler()
    app = web.Application()
    app.router.add_post("/mcp", tattler.mcp)
    app.router.add_get("/service/openapi.json", tattler.document)
    app.router.add_get("/service/{operation}", tattler.service)
    app.router.add_get("/.well-known/oauth-authorization-server", tattler.metadata)
    app.router.add_get("/.well-known/oauth-protected-resource/{tail:.*}", tattler.resource)
    app.router.add_post("/token", tattler.token)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    tattler.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield tattler
    finally:
        await runner.cleanup()
