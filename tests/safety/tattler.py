"""A server that blurts out whatever secret it is told: in results, lists, failures, refusals, errors.

An MCP server at `/mcp`, an OpenAPI service at `/service`, an authorisation server that gives no token.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from aiohttp import BasicAuth, web

from servers import protocol

WRONG = "wrong"
_TEXT = {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}}
_TOOLS = [
    {"name": name, "description": name, "inputSchema": _TEXT, "annotations": {"readOnlyHint": name != "note"}}
    for name in ("whoami", "large", "stream", "note", "fail", "fault", "crash", "refuse", "odd")
]
KEPT = 8_000  # bytes: a larger result is kept whole, and cut for who asked


_OFFERS = {"capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}}
_ASKED: dict[str, Callable[[str], dict[str, Any]]] = {
    "resources/list": lambda told: {"resources": [{"uri": "told://1", "name": told, "description": told}]},
    "resources/read": lambda told: {"contents": [{"uri": "told://1", "text": told}]},
    "prompts/list": lambda told: {"prompts": [{"name": "told", "description": told}]},
    "prompts/get": lambda told: {
        "description": told,
        "messages": [{"role": "user", "content": {"type": "text", "text": told}}],
    },
}


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
        words += [word.encode().hex() for word in secret] + [word.encode().hex().upper() for word in secret]
        for word in [*secret, secret[0].partition(" ")[2]]:
            for before in ("", "x", "xx"):
                whole = f"{before}{word}{before}".encode()
                words += [b64encode(whole).decode(), urlsafe_b64encode(whole).decode()]
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
            return self._answered(message, {**protocol.discover(), "instructions": told, **_OFFERS})
        if message["method"] == "tools/list":
            tools = [{**one, "description": f"{one['name']} {told}"} for one in _TOOLS]
            return self._answered(message, protocol.tools_list(tools, None, 0, is_modern=True))
        if message["method"] in _ASKED:
            return self._answered(message, protocol.stamped(_ASKED[message["method"]](told)))
        if message["method"] != "tools/call":
            return web.json_response(protocol.error(message["id"], -32601, "no such method"), status=404)
        if message["params"]["name"] == "stream":
            return self._streamed(message, told)
        return self._called(message["id"], message["params"]["name"], told)

    def _answered(self, message: Any, result: Any) -> web.Response:
        return web.json_response(protocol.answer(message["id"], result))

    def _streamed(self, message: Any, told: str) -> web.Response:
        """Progress and a line of a log before the result."""
        token = (message["params"].get("_meta") or {}).get("progressToken")
        params = {"progressToken": token, "progress": 1, "total": 2, "message": told}
        events = [
            protocol.notification("notifications/progress", params),
            protocol.notification("notifications/message", {"level": "info", "data": {told: told}}),
            protocol.answer(message["id"], protocol.stamped({"content": [{"type": "text", "text": told}]})),
        ]
        body = "".join(f"event: message\ndata: {json.dumps(one)}\n\n" for one in events)
        return web.Response(text=body, content_type="text/event-stream")

    def _called(self, request_id: Any, tool: str, told: str) -> web.Response:
        if tool == "fault":
            return web.json_response(protocol.error(request_id, -32603, f"no: {told}", {"headers": told}))
        if tool == "crash":
            return web.Response(status=500, text=f"Traceback: {told}")
        if tool == "refuse":
            return web.Response(status=403, text=f"you are {told}", headers={"X-Reason": quote(told)})
        if tool == "odd":
            return web.Response(text=f"this is no JSON: {told}")
        text = told if tool in ("whoami", "large", "fail") else "noted"
        if tool == "large":
            text = f"told: {text} {'x' * KEPT} {text}"
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": tool == "fail"}
        if tool == "whoami":
            link = {"type": "resource_link", "uri": f"https://a.example/{quote(told)}", "name": told}
            result["content"].append(link)
            result |= {"structuredContent": {"seen": [told], told: {"deep": told}}, "_meta": {"told": told}}
        return web.json_response(protocol.answer(request_id, protocol.stamped(result)))

    async def document(self, request: web.Request) -> web.Response:
        paths = {
            f"/{name}": {"get": {"operationId": name, "responses": {"200": {"description": "ok"}}}}
            for name in ("look", "break", "hang_up")
        }
        info = {"title": "Tattler", "version": "1", "description": self._told(request)}
        servers = [{"url": f"{self.origin}/service"}]
        return web.json_response({"openapi": "3.0.3", "info": info, "servers": servers, "paths": paths})

    async def service(self, request: web.Request) -> web.Response:
        told = self._told(request)
        if request.path.endswith("break"):
            return web.json_response({"error": told}, status=500)
        if request.path.endswith("hang_up"):
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"ok": True, "seen": [told], told: 1})

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
