"""Faults of an HTTP answer, planned by a test and played by the HTTP test server."""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from toolbox import Json

Answer = Callable[[], Awaitable[Json]]


@dataclass
class Fault:
    """What happens to the next `times` requests of `method` (-1: to all of them).

    `executed` says whether the tool runs before the fault: only then is there something to lose.
    """

    kind: str
    method: str = "tools/call"
    tool: str | None = None
    times: int = 1
    executed: bool = False
    status: int = 500
    headers: dict[str, str] | None = None
    seconds: float = 600.0
    location: str = ""

    def concerns(self, method: str, tool: str | None) -> bool:
        return self.times != 0 and self.method in (method, "*") and self.tool in (None, tool)


def reset(request: web.Request) -> None:
    """Closes the connection with a RST, as a crashed peer would."""
    transport = request.transport
    if transport is None:
        return
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    transport.abort()


async def play(fault: Fault, request: web.Request, answer: Answer) -> web.StreamResponse:
    """The faulty answer. `answer` executes the request; it is called only when the fault says so."""
    body = json.dumps(await answer()).encode() if fault.executed else b'{"jsonrpc":"2.0","id":0,"result":{}}'
    kind = fault.kind
    if kind == "status":
        return web.Response(status=fault.status, headers=fault.headers, text="no")
    if kind == "reset":
        reset(request)
        return web.Response()
    if kind in ("cut_json", "cut_sse", "drip"):
        return await _partial(fault, request, body)
    if kind == "hang":
        await asyncio.sleep(fault.seconds)
        return web.Response(status=504)
    if kind == "redirect":
        return web.Response(status=307, headers={"Location": fault.location})
    if kind == "accepted":
        return web.Response(status=202)
    whole: dict[str, tuple[bytes, str]] = {
        "garbage": (b'{"jsonrpc": "2.0", "id": ', "application/json"),
        "wrong_type": (b"<html>Welcome to our hotel network</html>", "text/html"),
        "invalid_utf8": (body[:-2] + b',"x":"\xff\xfe"}}', "application/json"),
        "no_object": (b"[1, 2, 3]", "application/json"),
        "empty": (b"", "application/json"),
        "wrong_id": (b'{"jsonrpc":"2.0","id":"other","result":{"content":[]}}', "application/json"),
        "no_event": (b": nothing\n\n", "text/event-stream"),
        "garbage_event": (b"event: message\ndata: {{{\n\n", "text/event-stream"),
    }
    data, content_type = whole[kind]
    return web.Response(body=data, content_type=content_type)


async def _partial(fault: Fault, request: web.Request, body: bytes) -> web.StreamResponse:
    is_sse = fault.kind == "cut_sse"
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream" if is_sse else "application/json"}
    )
    if fault.kind == "cut_json":
        response.content_length = len(body) + 100
    await response.prepare(request)
    if fault.kind == "drip":
        for _ in range(int(fault.seconds * 20)):
            await response.write(b" ")
            await asyncio.sleep(0.05)
        return response
    await response.write(b"event: message\ndata: " + body[: len(body) // 2] if is_sse else body[:-2])
    if request.transport:
        request.transport.close()
    return response
