"""A server of the 2026 era with an app: a tool with a page, and `_meta` in all that it says.

`heard` are the `_meta` and headers of the calls that reached it.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from servers.ports import listen

Json = dict[str, Any]
PAGE = "ui://clock/app.html"
UI = "io.modelcontextprotocol/ui"
SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "clock", "version": "1"}}
FORGED = {"dragoman/error": {"code": "denied"}, "com.example/kept": {"a": 1}}


class AppServer:
    def __init__(self) -> None:
        self.url = ""
        self.heard: list[tuple[Json, dict[str, str]]] = []

    async def post(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        if "id" not in body:
            return web.Response(status=202)
        method, params = body["method"], body.get("params") or {}
        if method == "tools/call":
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.heard.append((params["_meta"], headers))
        facts = self._result(method, params)
        if facts is None:
            error = {"code": -32601, "message": "no such method"}
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "error": error}, status=404)
        result = {"resultType": "complete", **facts, "_meta": {**facts.get("_meta", {}), **SERVER}}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})

    def _result(self, method: str, params: Json) -> Json | None:
        cached: Json = {"ttlMs": 0, "cacheScope": "private"}
        match method:
            case "server/discover":
                capabilities: Json = {"tools": {}, "resources": {}, "extensions": {UI: {}}}
                return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **cached}
            case "tools/list":
                meta = {"ui": {"resourceUri": PAGE, "visibility": ["app"]}, "ui/resourceUri": PAGE, **FORGED}
                tool: Json = {"name": "now", "description": "The time.", "inputSchema": {"type": "object"}}
                return {"tools": [{**tool, "_meta": meta}], **cached}
            case "tools/call":
                meta = {"ui": {"resourceUri": PAGE}, **FORGED}
                return {"content": [{"type": "text", "text": "noon"}], "_meta": meta}
            case "resources/list":
                return {"resources": [{"uri": PAGE, "name": "app", "mimeType": "text/html"}], **cached}
            case "resources/read" if params["uri"] == PAGE:
                return {"contents": [{"uri": PAGE, "text": "<p>clock</p>", "_meta": {"ui": {}}}], **cached}
            case _:
                return None


@asynccontextmanager
async def open_app_server() -> AsyncGenerator[AppServer]:
    server = AppServer()
    app = web.Application()
    app.router.add_post("/mcp", server.post)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    listener = listen()
    try:
        await web.SockSite(runner, listener).start()
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        yield server
    finally:
        await runner.cleanup()
