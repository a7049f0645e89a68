"""A server with a prompt and two resources that tells of what changes, in the era that it is started with.

Run as a process; `--port-file` is written once it listens. Its tool `change` changes one of them. It tells
nobody of anything that was not asked for.
"""

import argparse
import asyncio
import json
import os
from secrets import token_hex
from typing import Any

from aiohttp import web

Json = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"
CAPABILITIES: Json = {
    "tools": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
CHANGE: Json = {
    "name": "change",
    "description": "Changes the list of prompts or resources, or the resource at an address.",
    "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
}
LISTS = {"prompts": "notifications/prompts/list_changed", "resources": "notifications/resources/list_changed"}


class Telling:
    def __init__(self, era: str) -> None:
        self.era = era
        self.version = "2026-07-28" if era == "2026" else "2025-11-25"
        self.session = token_hex(8)
        self.subscribed: set[str] = set()
        self.streams: dict[asyncio.Queue[Json], Json] = {}  # with what each wants to hear of

    def answer(self, method: str, params: Json) -> Json | None:
        if method in ("initialize", "server/discover"):
            if (method == "initialize") == (self.era == "2026"):
                return None
            facts = {"capabilities": CAPABILITIES}
            if method == "initialize":
                return {**facts, "protocolVersion": self.version, "serverInfo": {"name": "t", "version": "1"}}
            return {**facts, "supportedVersions": [self.version], "ttlMs": 0, "cacheScope": "private"}
        if method == "tools/list":
            return {"tools": [CHANGE]}
        if method == "tools/call":
            self.tell(params["arguments"]["what"])
            return {"content": [], "structuredContent": {"subscribed": sorted(self.subscribed)}}
        if method == "resources/list":
            return {"resources": [{"uri": f"test://{name}", "name": name} for name in ("a", "b")]}
        if method == "resources/read":
            return {"contents": [{"uri": params["uri"], "text": "here"}]}
        if method == "prompts/list":
            return {"prompts": [{"name": "hello"}]}
        if method == "prompts/get":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello!"}}]}
        if self.era == "2025" and method in ("resources/subscribe", "resources/unsubscribe"):
            (self.subscribed.add if method.endswith("/subscribe") else self.subscribed.discard)(params["uri"])
            return {}
        return {} if method == "ping" else None

    def tell(self, what: str) -> None:
        for queue, wanted in self.streams.items():
            uris = self.subscribed if self.era == "2025" else wanted.get("resourceSubscriptions") or ()
            if what in LISTS:
                if self.era == "2025" or wanted.get(f"{what}ListChanged"):
                    queue.put_nowait({"method": LISTS[what], "params": {}})
            elif what in uris:
                queue.put_nowait({"method": "notifications/resources/updated", "params": {"uri": what}})

    def knows(self, request: web.Request) -> bool:
        return request.headers.get("Mcp-Session-Id", self.session) == self.session

    async def get(self, request: web.Request) -> web.StreamResponse:
        if self.era == "2026":
            return web.Response(status=405)
        if not self.knows(request):
            return web.Response(status=404)
        return await self.stream(request, {}, None)

    async def post(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        request_id, method, params = body.get("id"), body.get("method", ""), body.get("params") or {}
        if not self.knows(request):
            return web.Response(status=404)
        if request_id is None:
            return web.Response(status=202)
        if method == "subscriptions/listen" and self.era == "2026":
            wanted = params["notifications"]
            self.subscribed |= set(wanted.get("resourceSubscriptions") or ())
            return await self.stream(request, wanted, request_id)
        result = self.answer(method, params)
        facts: Json = {"error": {"code": -32601, "message": "Method not found"}}
        if result is not None:
            facts = {"result": {"resultType": "complete", **result} if self.era == "2026" else result}
        headers = {"Mcp-Session-Id": self.session} if method == "initialize" else {}
        return web.json_response({"jsonrpc": "2.0", "id": request_id, **facts}, headers=headers)

    async def stream(self, request: web.Request, wanted: Json, request_id: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        queue: asyncio.Queue[Json] = asyncio.Queue()
        meta = {} if request_id is None else {"_meta": {f"{PREFIX}subscriptionId": request_id}}
        if request_id is not None:
            method = "notifications/subscriptions/acknowledged"
            queue.put_nowait({"method": method, "params": {"notifications": wanted}})
        self.streams[queue] = wanted
        try:
            while True:
                message = await queue.get()
                message = {"jsonrpc": "2.0", **message, "params": {**message["params"], **meta}}
                await response.write(b"data: " + json.dumps(message).encode() + b"\n\n")
        finally:
            del self.streams[queue]

    async def state(self, request: web.Request) -> web.Response:
        return web.json_response({"streams": len(self.streams), "subscribed": sorted(self.subscribed)})


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("era", choices=["2025", "2026"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    options = parser.parse_args()
    telling = Telling(options.era)
    app = web.Application()
    app.router.add_post("/mcp", telling.post)
    app.router.add_get("/mcp", telling.get)
    app.router.add_get("/control", telling.state)
    app.router.add_delete("/mcp", lambda request: web.Response())  # pyright: ignore
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", options.port)
    await site.start()
    with open(options.port_file + ".new", "w") as file:
        file.write(str(runner.addresses[0][1]))
    os.replace(options.port_file + ".new", options.port_file)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
