"""Streams of every door end within two seconds of the key, the user or the workspace behind them.

The console's are found in its routes, so that one that is added later is opened here as well, or the test
says that it does not know how.
"""

import asyncio
import inspect
import json
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from starlette.requests import Request
from starlette.responses import Response

from api.live import Live, open_service
from dragoman import Annotations
from dragoman.console.app import ROUTES
from dragoman.console.sessions import COOKIE
from patience import PATIENCE, deadline, until
from servers.library_server import open_library
from web.ended_rights import (
    Someone,
    disable,
    expire,
    mcp_streams,
    narrow,
    opened,
    remove_user,
    remove_workspace,
    rest_streams,
    revoke,
    seconds_until_end,
    someone,
)

pytestmark = pytest.mark.anyio

WITHIN = 2.0
SETTINGS: dict[str, Any] = {"multi_user": True, "allowed_networks": ("127.0.0.0/8",), "model": "scripted"}


async def signed_in(live: Live, who: Someone) -> dict[str, str]:
    answer = Response()
    await live.doors.sessions.begin(answer, who.key)
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert cookie.startswith(COOKIE)
    return {"Cookie": cookie}


async def console_streams(
    live: Live, who: Someone, stack: AsyncExitStack
) -> dict[str, aiohttp.ClientResponse]:
    headers = await signed_in(live, who)
    cookie = headers["Cookie"].encode()
    found = await live.doors.sessions.find(Request({"type": "http", "headers": [(b"cookie", cookie)]}))
    assert found is not None
    silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))  # a server that never answers
    entry = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"}
    forms: dict[str, dict[str, str]] = {
        "/transfer/apply": {"text": json.dumps({"mcpServers": {"silent": entry}})},
        "/tools/{name}/try": {"as": "json", "json": "{}"},
    }
    streams: dict[str, aiohttp.ClientResponse] = {}
    for route in ROUTES:
        if "event_stream(" not in inspect.getsource(route.endpoint):
            continue
        method = "POST" if route.path in forms else "GET"
        marks = {"X-CSRF-Token": found.csrf} if method == "POST" else {}
        stream = opened(
            live,
            method,
            route.path.format(**who.names),
            {**headers, **marks},
            forms.get(route.path),
        )
        streams[route.path] = await stack.enter_async_context(stream)
    return streams


# How a right ends, and what its key is made with

ENDINGS: dict[Callable[[Live, Someone], Awaitable[None]], dict[str, Any]] = {
    revoke: {},
    expire: {"expires_in": 2},
    disable: {},
    narrow: {},
    remove_user: {},
    remove_workspace: {},
}


@asynccontextmanager
async def conversations(home: Path) -> AsyncGenerator[Live]:
    """A service whose agents do not answer before it ends."""
    held = asyncio.Event()

    async def think(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        await held.wait()
        yield "done"

    async def wait_long() -> None:
        """Waits until all is over."""
        await held.wait()

    async with open_service(home, **SETTINGS) as live:
        live.hub.add_tool(wait_long, annotations=Annotations(read_only=True))
        live.hub.models.register("scripted", FunctionModel(stream_function=think, model_name="scripted"))
        try:
            yield live
        finally:
            held.set()


@pytest.mark.slow
async def test_streams_of_every_door_end_when_their_right_does(tmp_path: Path) -> None:
    async with open_library() as library, conversations(tmp_path) as live:
        for end, key in ENDINGS.items():
            who = await someone(live, end.__name__, library.url, **key)
            async with deadline(30), AsyncExitStack() as stack:
                streams = {
                    **await rest_streams(live, who, stack),
                    **await mcp_streams(live, who, stack),
                    **await console_streams(live, who, stack),
                }
                assert len(streams) >= 10
                kept = await stack.enter_async_context(
                    opened(live, "GET", "/api/events", {"Authorization": f"Bearer {live.token}"})
                )
                await end(live, who)
                took = await seconds_until_end(streams.values(), time.monotonic())
                late = {name: f"{after:.1f} s" for name, after in zip(streams, took, strict=True)}
                assert max(took) < WITHIN * PATIENCE, (end.__name__, late)
                assert not kept.content.at_eof(), "a stranger's ending ended another's stream"


async def test_streams_of_the_operator_end_when_the_service_has_another_token(tmp_path: Path) -> None:
    async with conversations(tmp_path) as live:
        old = {"Authorization": f"Bearer {live.token}"}
        async with deadline(20), opened(live, "GET", "/api/events", old) as stream:
            live.hub.settings.token_file.unlink()
            await stream.content.read()
        assert (await live.ask("GET", "/api/me", **old)).status == 401
        new = live.hub.settings.token_file.read_text().strip()
        assert new != live.token
        assert (await live.ask("GET", "/api/me", Authorization=f"Bearer {new}")).status == 200


async def test_streams_in_another_process_end_in_time_too(postgres_url: str, tmp_path: Path) -> None:
    """Two services on one database: what one revokes ends streams of the other."""
    settings: dict[str, Any] = {**SETTINGS, "database_url": postgres_url}
    async with (
        open_service(tmp_path / "one", **settings) as one,
        open_service(tmp_path / "two", **settings) as two,
    ):
        who = await someone(one, "ann")
        async with deadline(20), opened(two, "GET", "/api/events", who.bearer) as stream:
            await revoke(one, who)
            began = time.monotonic()
            await stream.content.read()
            assert time.monotonic() - began < WITHIN * PATIENCE


async def test_a_user_has_a_share_of_streams_whichever_doors_they_take(tmp_path: Path) -> None:
    async with (
        open_library() as library,
        open_service(tmp_path, max_streams_per_user=1, **SETTINGS) as live,
    ):
        one, other = [await someone(live, name, library.url) for name in ("one", "other")]
        headers = {"/api/events": one.bearer, "/log/events": await signed_in(live, one)}

        async def status(path: str) -> int:
            async with live.session.get(live.url + path, headers=headers[path]) as answer:
                return answer.status

        for path in headers:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(opened(live, "GET", path, headers[path]))
                assert [await status(door) for door in headers] == [429, 429]
                with pytest.raises(AssertionError, match="429"):
                    await mcp_streams(live, one, stack)
                await stack.enter_async_context(opened(live, "GET", "/api/events", other.bearer))

            async def is_free() -> bool:
                return await status("/api/events") == 200

            await until(is_free)
        async with AsyncExitStack() as stack:
            with pytest.raises(
                AssertionError, match="one user may have 1"
            ):  # the first is open, the second not
                await mcp_streams(live, one, stack)
            assert await status("/api/events") == 429
