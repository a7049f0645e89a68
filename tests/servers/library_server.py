"""A server of the 2025 era with resources and prompts, in the loop of the test, which sees what it is asked.

`gate` holds requests back while it is not set; `most_at_once` is how many it had to answer at one time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from servers.ports import listen

Json = dict[str, Any]
BIG = "ä word\n" * 40_000  # 320,000 bytes: more than a model is shown at once


class Library:
    def __init__(self) -> None:
        self.url = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self.at_once = 0
        self.most_at_once = 0
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.metas: list[Json] = []
        self.refuses: str | None = None
        self.streams: list[web.StreamResponse] = []

    async def tell(self, uri: str) -> None:
        """That a resource changed."""
        line = (
            f'data: {{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}'
        )
        for stream in self.streams:
            await stream.write(f"{line}\n\n".encode())

    async def post(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        method, params = body.get("method", ""), body.get("params") or {}
        if "id" not in body:
            return web.Response(status=202)
        self.asked.append(method)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.metas.append(params.get("_meta") or {})
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if method not in ("initialize", "tools/list"):
                await self.gate.wait()
            answer = self._answer(method, params, request)
        finally:
            self.at_once -= 1
        headers = {"Mcp-Session-Id": "library"} if method == "initialize" else {}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], **answer}, headers=headers)

    async def get(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        self.streams.append(stream)
        await asyncio.Event().wait()
        return stream

    def _answer(self, method: str, params: Json, request: web.Request) -> Json:
        if method == self.refuses:
            return {"error": {"code": -32603, "message": "out of order"}}
        uri = str(params.get("uri"))
        match method:
            case "initialize":
                offers: Json = {
                    "tools": {},
                    "resources": {"subscribe": True},
                    "prompts": {},
                    "completions": {},
                }
                info = {"name": "library", "version": "1"}
                facts = {"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": info}
            case "tools/list":
                facts = {"tools": [{"name": "lend", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                facts = {"content": [{"type": "text", "text": "lent"}]}
            case "resources/list":
                pages = {None: ("book:///one", "2"), "2": ("book:///big", "3"), "3": ("book:///echo", None)}
                name, cursor = pages[params.get("cursor")]
                entry = {"uri": name, "name": name[8:], "mimeType": "text/plain", "size": 3}
                facts = {"resources": [entry], **({"nextCursor": cursor} if cursor else {})}
            case "resources/templates/list":
                facts = {"resourceTemplates": [{"uriTemplate": "book:///{title}", "name": "any"}]}
            case "resources/read" if uri in ("book:///big", "ui://big"):
                facts = {"contents": [{"uri": uri, "mimeType": "text/html", "text": BIG}]}
            case "resources/read" if uri == "book:///echo":
                said = request.headers.get("Authorization", "")
                facts = {"contents": [{"uri": uri, "text": f"you said {said}"}]}
            case "resources/read" if uri == "book:///one":
                facts = {"contents": [{"uri": uri, "text": "one"}, {"uri": uri, "blob": "AAEC"}]}
            case "resources/read":
                return {"error": {"code": -32002, "message": "Resource not found"}}
            case "prompts/list":
                topic = {"name": "topic", "required": True}
                facts = {"prompts": [{"name": "review", "description": "About a book", "arguments": [topic]}]}
            case "prompts/get":
                topic = params["arguments"].get("topic", "")
                text = BIG if topic == "all" else f"Write about {topic}."
                facts = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
            case "completion/complete":
                facts = {"completion": {"values": [f"{params['argument']['value']}ea"]}}
            case "resources/subscribe" | "resources/unsubscribe" | "ping":
                facts = {}
            case _:
                return {"error": {"code": -32601, "message": "Method not found"}}
        return {"result": facts}


@asynccontextmanager
async def open_library() -> AsyncGenerator[Library]:
    library = Library()
    app = web.Application()
    app.router.add_post("/mcp", library.post)
    app.router.add_get("/mcp", library.get)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    listener = listen()
    try:
        await web.SockSite(runner, listener).start()
        library.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        yield library
    finally:
        library.gate.set()
        await runner.cleanup()
