"""Servers that connect well and fall at once: nobody may hammer them."""

import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web

from patience import give_time, until
from servers import protocol
from servers.hubs import open_hub, quick, state_is

pytestmark = [pytest.mark.anyio, pytest.mark.fault]

# Answers the first four messages of the 2025 era, then ends.
SHORT_LIVED = """
import json, sys
with open(sys.argv[1], "a") as starts:
    starts.write("start\\n")
answers = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "short", "version": "1"}},
    "tools/list": {"tools": []},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answers.get(message["method"])
        said = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
    if message["method"] == "tools/list":
        sys.exit(0)
"""


async def test_a_server_that_fails_its_subscriptions_stays_connected(tmp_path: Path) -> None:
    methods: list[str] = []
    listened: list[float] = []

    async def post(request: web.Request) -> web.Response:
        message = await request.json()
        methods.append(message["method"])
        if message["method"] == "subscriptions/listen":
            listened.append(time.monotonic())
        if message["method"] == "server/discover":
            return web.json_response(protocol.answer(message["id"], protocol.discover()))
        if message["method"] == "tools/list":
            return web.json_response(protocol.answer(message["id"], protocol.tools_list([], None, 0, True)))
        return web.Response(status=500)

    app = web.Application()
    app.router.add_post("/mcp", post)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with open_hub(tmp_path) as hub:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
            await hub.connectors.add("deaf", **quick(url=url))
            await state_is(hub, "deaf", "connected")
            await until(lambda: "subscriptions/listen" in methods)
            await give_time(0.5)  # long enough for many rounds, if there were any
            assert (await hub.connectors.get("deaf")).status.state == "connected"
            assert methods.count("server/discover") == 1
            pauses = [later - earlier for earlier, later in pairwise(listened)]
            assert all(pause >= 0.5 for pause in pauses), pauses
    finally:
        await runner.cleanup()


async def test_a_server_that_dies_as_soon_as_it_is_connected_is_tried_less_and_less(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add(
            "short",
            **quick(command=sys.executable, args=["-c", SHORT_LIVED, str(starts)]),
            mounts=[f"{starts.parent}:rw"],
        )
        began = time.monotonic()
        await until(lambda: len(starts.read_text().split()) >= 4, within=20)
        # One at first, one at once, one after a second, one after two: not one every few milliseconds.
        assert time.monotonic() - began > 2.4
