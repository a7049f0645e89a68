"""Model providers for tests: real HTTP servers on loopback that answer by a scenario or a Python function.

    async with open_scripted_openai("chain") as server:
        Models(environment={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}, …)

What a scenario file holds is told in scenarios.py. A request that no rule fits is answered with status 400
and kept in `complaints`, which fail the test when the server closes.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from aiohttp import web

from servers.scenarios import Reply, Scenario, Script, Turn
from servers.scripted_wires import AnthropicWire, Json, OpenAIWire, ResponsesWire, Wire


class ScriptedServer:
    """`requests` are the bodies it got, `turns` what they mean, `keys` the keys they came with.

    With `key` set, any other is refused, and told back in full: worse than providers do.
    """

    def __init__(self, wire: Wire, script: Script, key: str | None) -> None:
        self._wire = wire
        self._script = script
        self._key = key
        self._planned: list[Reply] = []
        self.requests: list[Json] = []
        self.turns: list[Turn] = []
        self.keys: list[str] = []
        self.complaints: list[str] = []
        self.arrived = asyncio.Event()
        self.left_alone = asyncio.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        """As OPENAI_BASE_URL or ANTHROPIC_BASE_URL want it."""
        return f"http://127.0.0.1:{self.port}{self._wire.prefix}"

    def plan(self, *replies: Reply) -> None:
        """The next requests get these, whatever the script would say."""
        self._planned.extend(replies)

    def forget_plan(self) -> None:
        """What was planned and nobody asked for: clients try again as often as they like."""
        self._planned.clear()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.arrived.set()
        body: Json = await request.json()
        key = self._wire.key(request.headers)
        self.requests.append(body)
        self.keys.append(key)
        if self._key is not None and key != self._key:
            return self._error(401, f"Incorrect API key provided: {key}. Authorization: Bearer {key}")
        try:
            reply = await self._reply(body)
        except (LookupError, ValueError, AssertionError) as complaint:
            self.complaints.append(str(complaint))
            return self._error(400, f"scripted model: {complaint}")
        await self._wait(reply.delay)
        return await self._send(request, body, reply)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.left_alone.set()
            raise

    async def _reply(self, body: Json) -> Reply:
        turn = self._wire.read(body)
        self.turns.append(turn)
        if self._planned:
            return self._planned.pop(0)
        reply = self._script(turn)
        return await reply if inspect.isawaitable(reply) else reply

    async def _send(self, request: web.Request, body: Json, reply: Reply) -> web.StreamResponse:
        if reply.status is not None:
            headers = {"Retry-After": str(reply.retry_after)} if reply.retry_after is not None else {}
            return self._error(reply.status, reply.text or "planned", headers)
        if reply.context_too_long:
            return self._error(400, self._wire.too_long, is_too_long=True)
        if reply.garbage:
            kind = "text/event-stream" if body.get("stream") else "application/json"
            return web.Response(
                body=b"data: {not json\n\n" if body.get("stream") else b"{no", content_type=kind
            )
        if not body.get("stream"):
            return web.json_response(self._wire.whole(body, reply))
        return await self._stream(request, body, reply)

    async def _stream(self, request: web.Request, body: Json, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        events = list(self._wire.events(body, reply))
        half = len(events) // 2
        for place, event in enumerate(events[:half] if reply.cut or reply.unfinished else events):
            if reply.stall and place == half:
                await self._wait(reply.stall)
            await response.write(event.encode())
        if reply.cut:
            # Without the last chunk of the body: a client can tell that something is missing.
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write_eof()
        return response

    def _error(
        self, status: int, message: str, headers: dict[str, str] | None = None, is_too_long: bool = False
    ) -> web.Response:
        return web.json_response(
            self._wire.error(status, message, is_too_long), status=status, headers=headers or {}
        )


def open_scripted_openai(
    script: Script | str | Path, key: str | None = None
) -> AbstractAsyncContextManager[ScriptedServer]:
    """Speaks OpenAI's chat completions: open its models as `openai-chat:…`."""
    return _open(OpenAIWire(), script, key)


def open_scripted_responses(script: Script | str | Path) -> AbstractAsyncContextManager[ScriptedServer]:
    """Speaks OpenAI's responses, to a client that sends the whole conversation."""
    return _open(ResponsesWire(), script, None)


def open_scripted_anthropic(
    script: Script | str | Path, key: str | None = None
) -> AbstractAsyncContextManager[ScriptedServer]:
    """Speaks Anthropic's messages: open its models as `anthropic:…`."""
    return _open(AnthropicWire(), script, key)


@asynccontextmanager
async def _open(wire: Wire, script: Script | str | Path, key: str | None) -> AsyncGenerator[ScriptedServer]:
    server = ScriptedServer(wire, Scenario.load(script) if isinstance(script, str | Path) else script, key)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post(wire.path, server.answer)
    # A client that goes away cancels its request.
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()
    assert not server.complaints, server.complaints
