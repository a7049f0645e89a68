"""An action server is a real service: found in its file, discovered at start, called with its key."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from servers.hubs import open_hub

pytestmark = pytest.mark.anyio

KEY = "k3y-of-the-shop"
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/orders": {
            "get": {
                "operationId": "list_orders",
                "parameters": [{"name": "state", "in": "query", "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}},
            }
        }
    },
}


@asynccontextmanager
async def open_shop(seen: list[tuple[str, str | None]]) -> AsyncGenerator[str]:
    async def document(request: web.Request) -> web.Response:
        return web.json_response(DOCUMENT)

    async def orders(request: web.Request) -> web.Response:
        seen.append((request.path_qs, request.headers.get("X-API-Key")))
        return web.json_response([{"id": 1}])

    app = web.Application()
    app.router.add_get("/openapi.json", document)
    app.router.add_get("/orders", orders)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_an_action_server_is_discovered_at_start_and_called_with_its_key(tmp_path: Path) -> None:
    seen: list[tuple[str, str | None]] = []
    async with open_shop(seen) as url:
        file = tmp_path / "action_servers.json"
        file.write_text(json.dumps({"servers": [{"name": "web_shop", "url": url, "api_key": KEY}]}))
        async with open_hub(tmp_path, action_servers=file) as hub:
            assert [tool.original_name for tool in hub.tools.list("web_shop")] == ["list_orders"]
            output = await hub.call("web_shop__list_orders", {"state": "open"})
            assert output.ok, output
            assert seen == [("/orders?state=open", KEY)]
            assert KEY not in repr(await hub.connectors.get("web-shop"))
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("dragoman.db*"))
