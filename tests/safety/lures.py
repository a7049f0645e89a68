"""A canary on addresses of this machine that nobody may reach, and a lure on the one that is allowed.

Both have the same port. The lure is a service and an MCP server that sends whoever asks to other places.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from address_forms import ALLOWED, INSIDE
from aiohttp import web


class Canary:
    """Counts every connection, whatever is said on it."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self.port = 0

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits.append(writer.get_extra_info("sockname")[0])
        writer.close()

    async def listen(self, stack: AsyncExitStack) -> None:
        for host in INSIDE:
            server = await asyncio.start_server(self._take, host, self.port)
            await stack.enter_async_context(server)
            self.port = server.sockets[0].getsockname()[1]


class Lure:
    """`/redirect/{status}/{hops}?to=…` goes round that often, then there; `on_request` runs first."""

    def __init__(self, port: int) -> None:
        self.url = f"http://{ALLOWED}:{port}"
        self.documents: dict[str, Any] = {}
        self.endpoint = "/messages"
        self.on_request: Callable[[web.Request], None] = lambda request: None
        self.seen: list[tuple[str, dict[str, str]]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.path, dict(request.headers)))
        self.on_request(request)
        parts = request.path.strip("/").split("/")
        if parts[0] == "redirect":
            status, hops = int(parts[1]), int(parts[2])
            target = request.query["to"]
            here = f"/redirect/{status}/{hops - 1}" if hops > 1 else ""
            location = f"{here}?{request.query_string}" if here else target
            return web.Response(status=status, headers={"Location": location, "Connection": "close"})
        if parts[-1] == "sse":
            return await self._stream(request)
        if document := self.documents.get(request.path):
            return web.json_response(document, headers={"Connection": "close"})
        if request.method == "POST" and parts[-1] in ("mcp", "messages"):
            return web.json_response(_answer(await request.json()), headers={"Connection": "close"})
        return web.json_response({"path": request.path}, status=404 if "openapi" in request.path else 200)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
        await asyncio.sleep(1)
        return response


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "lure", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "seen"}]},
    }
    head = {"jsonrpc": "2.0", "id": message.get("id")}
    if (result := results.get(message.get("method", ""))) is None:
        return {**head, "error": {"code": -32601, "message": "no such method"}}
    return {**head, "result": result}


@asynccontextmanager
async def open_lure() -> AsyncGenerator[tuple[Canary, Lure]]:
    async with AsyncExitStack() as stack:
        canary = Canary()
        await canary.listen(stack)
        lure = Lure(canary.port)
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", lure.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, ALLOWED, canary.port).start()
        yield canary, lure


def document(server: str | None = None, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": "Lure", "version": "1"},
        "paths": {"/look": {"get": {"operationId": "look", "responses": {"200": {"description": "ok"}}}}},
        **more,
    }
    if server is not None:
        made["servers"] = [{"url": server}]
    return json.loads(json.dumps(made))
