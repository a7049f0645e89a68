"""An MCP server that tells each caller their own mark: in its list, its results, its errors.

Streamable HTTP of the 2026 era, in the test's own loop. Remembers every header that reached it.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from servers import protocol

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


@dataclass
class Upstream:
    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def post(self, request: web.Request) -> web.Response:
        self.headers.append(dict(request.headers))
        # A token is the caller's mark backwards; what is told is the mark.
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")[::-1]
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        if not token:
            return web.json_response({"error": "who are you?"}, status=401)
        if message["method"] not in ("server/discover", "tools/list", "tools/call", *_OFFERED):
            return web.json_response(protocol.error(message["id"], -32601, "no such method"), status=404)
        return web.json_response(protocol.answer(message["id"], self._result(message, token)))

    def _result(self, message: dict[str, Any], token: str) -> dict[str, Any]:
        if message["method"] == "server/discover":
            known = protocol.discover()
            return {**known, "capabilities": {**known["capabilities"], "resources": {}, "prompts": {}}}
        if message["method"] in _OFFERED:
            return protocol.stamped(_offered(message["method"], token))
        if message["method"] == "tools/list":
            return protocol.tools_list(_tools(token), None, 0, is_modern=True)
        name, arguments = message["params"]["name"], message["params"].get("arguments", {})
        text = {
            "whoami": token,
            "flood": f"{token} " * 1000,
            "note": f"noted {arguments.get('text')} for {token}",
            "fail": f"no such thing, {token}",
        }[name]
        if name == "note":
            self.notes.append((token, arguments.get("text", "")))
        content = [{"type": "text", "text": text}]
        return protocol.stamped({"content": content, "isError": name == "fail"})


_OFFERED = ("resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get")


def _offered(method: str, token: str) -> dict[str, Any]:
    """Resources and prompts tell the mark as well."""
    text = {"type": "text", "text": token}
    return {
        "resources/list": {"resources": [{"uri": "mark:///mine", "name": token}]},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "mark:///{of}", "name": token}]},
        "resources/read": {"contents": [{"uri": "mark:///mine", "text": token}]},
        "prompts/list": {"prompts": [{"name": "mine", "description": token}]},
        "prompts/get": {"messages": [{"role": "user", "content": text}]},
    }[method]


def _tools(token: str) -> list[dict[str, Any]]:
    def tool(name: str, **annotations: bool) -> dict[str, Any]:
        return {
            "name": name,
            # An admin is shown the description of what a user is asked about.
            "description": name if name == "note" else f"{name} of {token}",
            "inputSchema": _TEXT,
            "annotations": annotations,
        }

    return [
        tool("whoami", readOnlyHint=True),
        tool("flood", readOnlyHint=True),
        tool("note"),
        tool("fail", readOnlyHint=True),
    ]


@asynccontextmanager
async def open_upstream() -> AsyncGenerator[Upstream]:
    upstream = Upstream()
    app = web.Application()
    app.router.add_post("/mcp", upstream.post)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield upstream
    finally:
        await runner.cleanup()
