"""An MCP server over HTTP in the test's own loop that shows each account other tools, and counts.

Speaks the 2026 era only. `tools_of` says what the holder of a token is shown; None is a 401.
"""

from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

from servers import protocol

Json = dict[str, Any]
ToolsOf = Callable[[str | None], list[Json] | None]


def tool(name: str, description: str = "", read_only: bool = True) -> Json:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {
        "name": name,
        "description": description or f"The tool {name}",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": read_only},
    }


class AccountServer:
    def __init__(self, tools_of: ToolsOf) -> None:
        self._tools_of = tools_of
        self._runner: web.AppRunner | None = None
        self.url = ""
        self.calls: list[tuple[str | None, str]] = []
        self.lists = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/mcp", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/mcp"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        scheme, _, word = request.headers.get("Authorization", "").partition(" ")
        token = word if scheme == "Bearer" else None
        tools = self._tools_of(token)
        if tools is None:
            return web.Response(status=401)
        message: Json = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        return web.json_response(self._said(message, token, tools))

    def _said(self, message: Json, token: str | None, tools: list[Json]) -> Json:
        method, request_id, params = message["method"], message["id"], message.get("params") or {}
        if method == "server/discover":
            facts = {"supportedVersions": [protocol.MODERN], "capabilities": {"tools": {}}}
            return protocol.answer(request_id, protocol.stamped(facts, ttlMs=0, cacheScope="private"))
        if method == "tools/list":
            self.lists += 1
            return protocol.answer(request_id, protocol.tools_list(tools, None, 0, True))
        if method == "tools/call":
            self.calls.append((token, params["name"]))
            content = [{"type": "text", "text": f"{params['name']} for {token}"}]
            return protocol.answer(request_id, protocol.stamped({"content": content}))
        return protocol.error(request_id, -32601, "Method not found", method)
