"""A raw MCP server over streamable HTTP in both eras, with a side door through which tests plan faults.

`POST /control` plans faults, forgets sessions and refuses connections; `GET /control` tells what
reached the server. Run as a process; `--port-file` is written once it listens.
"""

import argparse
import asyncio
import itertools
import json
import os
from typing import Any
from uuid import uuid4

import protocol
from aiohttp import web
from exchange import Exchange, event
from toolbox import CHANGES_LIST, Json, Log, Toolbox
from wire_faults import Fault, play

STATUS_OF = {-32601: 404, -32602: 400, -32600: 400, -32022: 400, -32020: 400}
NAMED = frozenset({"tools/call"})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=["2025", "2026", "both"], default="both")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file")
    parser.add_argument("--sse", action="store_true", help="answer with event streams")
    parser.add_argument("--no-session", action="store_true", help="the 2025 era without session ids")
    parser.add_argument("--no-get", action="store_true", help="405 for the GET stream of the 2025 era")
    parser.add_argument("--token", help="401 for requests without this bearer token")
    parser.add_argument("--api-key", help="NAME=VALUE: 401 for requests without this header")
    parser.add_argument("--journal")
    parser.add_argument(
        "--answer-after", type=float, default=0, help="most seconds from a send to its answer"
    )
    parser.add_argument("--log")
    parser.add_argument("--page", type=int, default=0)
    parser.add_argument("--start-delay", type=float, default=0)
    return parser.parse_args()


class HttpServer:
    """One listening process; sessions of the 2025 era and listeners of the 2026 era live in memory."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._log = Log(options.log)
        self._exchange = Exchange(Toolbox(options.journal), self._log, options.page, options.answer_after)
        self._sessions: dict[str, list[asyncio.Queue[Json]]] = {}
        self._listeners: dict[int, tuple[Any, asyncio.Queue[Json]]] = {}
        self._listener_ids = itertools.count()
        self._faults: list[Fault] = []
        self._seen: list[Json] = []
        self._site: web.TCPSite | None = None
        self._runner: web.AppRunner | None = None
        self.port: int = options.port

    async def serve(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/mcp", self._post)
        app.router.add_get("/mcp", self._get)
        app.router.add_delete("/mcp", self._delete)
        app.router.add_post("/moved", self._post)
        app.router.add_post("/control", self._control)
        app.router.add_get("/control", self._tell_control)
        # A client that goes away cancels its request: that is how the 2026 era cancels.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await self._listen()
        if self._options.port_file:
            with open(self._options.port_file + ".new", "w") as file:
                file.write(str(self.port))
            os.replace(self._options.port_file + ".new", self._options.port_file)
        self._log.write("start")
        await asyncio.Event().wait()

    async def _listen(self) -> None:
        assert self._runner is not None
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def _control(self, request: web.Request) -> web.Response:
        order = await request.json()
        self._faults += [Fault(**facts) for facts in order.get("faults", ())]
        if order.get("no_faults"):
            self._faults.clear()
        if order.get("forget_sessions"):
            self._sessions.clear()
        if "refuse" in order:
            asyncio.get_running_loop().call_later(0.01, self._refuse, float(order["refuse"]))
        return web.json_response({})

    def _refuse(self, seconds: float) -> None:
        """Stops listening, drops every connection, and listens again later."""

        async def closed() -> None:
            assert self._site is not None
            assert self._runner is not None
            assert self._runner.server is not None
            await self._site.stop()
            for connection in self._runner.server.connections:
                connection.force_close()
            await asyncio.sleep(seconds)
            await self._listen()

        self._refusal = asyncio.ensure_future(closed())

    async def _tell_control(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "seen": self._seen,
                "sessions": len(self._sessions),
                "streams": sum(map(len, self._sessions.values())),
                "listeners": len(self._listeners),
                "pid": os.getpid(),
            }
        )

    async def _post(self, request: web.Request) -> web.StreamResponse:
        message: Json = json.loads(await request.read())
        method: str = message.get("method", "")
        params = message.get("params") or {}
        tool, seen = params.get("name"), {"method": method, "headers": dict(request.headers)}
        self._seen.append({**seen, "tool": tool, "id": message.get("id"), "meta": params.get("_meta")})
        if (refused := self._unauthorised(request)) is not None:
            return refused

        async def answer() -> Json:
            session = request.headers.get("Mcp-Session-Id", "")
            return await self._answer(message, session, _is_modern(request), _say_nothing)

        for fault in self._faults:
            if fault.concerns(method, tool):
                fault.times -= 1
                return await play(fault, request, answer)
        if "id" not in message or "method" not in message:
            return web.Response(status=202)
        if _is_modern(request) and self._options.era != "2025":
            return await self._post_modern(request, message)
        return await self._post_legacy(request, message)

    def _unauthorised(self, request: web.Request) -> web.Response | None:
        expected: list[tuple[str, str]] = []
        if self._options.token:
            expected.append(("Authorization", f"Bearer {self._options.token}"))
        if self._options.api_key:
            name, _, value = self._options.api_key.partition("=")
            expected.append((name, value))
        if all(request.headers.get(name) == value for name, value in expected):
            return None
        return web.Response(
            status=401, headers={"WWW-Authenticate": 'Bearer realm="test"'}, text="who are you?"
        )

    async def _post_modern(self, request: web.Request, message: Json) -> web.StreamResponse:
        method, params, request_id = message["method"], message.get("params") or {}, message["id"]
        if missing := protocol.missing_envelope(params):
            return _json(protocol.error(request_id, -32602, missing))
        if request.headers.get("Mcp-Method") != method:
            return _json(protocol.error(request_id, -32020, "Mcp-Method does not match the body"))
        if method in NAMED and request.headers.get("Mcp-Name") != params.get("name"):
            return _json(protocol.error(request_id, -32020, "Mcp-Name does not match the body"))
        if method == "subscriptions/listen":
            return await self._stream_listener(request, request_id, params.get("notifications") or {})
        return await self._respond(request, message, "", is_modern=True)

    async def _post_legacy(self, request: web.Request, message: Json) -> web.StreamResponse:
        request_id = message["id"]
        if self._options.era == "2026":
            asked = (message.get("params") or {}).get("protocolVersion")
            return _json(protocol.no_handshake(request_id, asked))
        session = request.headers.get("Mcp-Session-Id")
        if message["method"] == "initialize":
            session = "" if self._options.no_session else uuid4().hex
            self._sessions[session] = []
        elif self._options.no_session:
            session = ""
        elif session is None:
            return _json(protocol.error(request_id, -32600, "Bad Request: Missing session ID"))
        elif session not in self._sessions:
            return _json(protocol.error(request_id, -32600, "Session not found"), status=404)
        return await self._respond(request, message, session, is_modern=False)

    async def _respond(
        self, request: web.Request, message: Json, session: str, is_modern: bool
    ) -> web.StreamResponse:
        headers = {"Mcp-Session-Id": session} if session else {}
        if not self._options.sse:
            answer = await self._answer(message, session, is_modern, _say_nothing)
            return _json(answer, headers=headers, is_modern=is_modern)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **headers})
        await response.prepare(request)

        async def tell(notification: Json) -> None:
            await response.write(event(notification))

        await response.write(event(await self._answer(message, session, is_modern, tell)))
        return response

    async def _answer(self, message: Json, session: str, is_modern: bool, tell: Any) -> Json:
        answer = await self._exchange.answer(message, session, is_modern, tell)
        if (message.get("params") or {}).get("name") in CHANGES_LIST:
            self._tell_list_changed()
        return answer

    def _tell_list_changed(self) -> None:
        for streams in self._sessions.values():
            for stream in streams:
                stream.put_nowait(protocol.list_changed())
        for subscription, queue in self._listeners.values():
            queue.put_nowait(protocol.list_changed(subscription))

    async def _stream_listener(
        self, request: web.Request, subscription: Any, wanted: Json
    ) -> web.StreamResponse:
        key, queue = next(self._listener_ids), asyncio.Queue[Json]()
        queue.put_nowait(protocol.acknowledged(subscription, wanted))
        if wanted.get("toolsListChanged"):  # nobody gets what they did not ask for
            self._listeners[key] = (subscription, queue)
        try:
            return await _stream(request, queue)
        finally:
            self._listeners.pop(key, None)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        session = request.headers.get("Mcp-Session-Id", "")
        self._seen.append({"method": "GET", "tool": None, "headers": dict(request.headers), "id": None})
        if self._options.no_get or self._options.era == "2026":
            return web.Response(status=405)
        if session not in self._sessions:
            return web.Response(status=404)
        queue: asyncio.Queue[Json] = asyncio.Queue()
        streams = self._sessions[session]
        streams.append(queue)
        try:
            return await _stream(request, queue)
        finally:
            streams.remove(queue)

    async def _delete(self, request: web.Request) -> web.Response:
        self._seen.append({"method": "DELETE", "tool": None, "headers": dict(request.headers), "id": None})
        known = self._sessions.pop(request.headers.get("Mcp-Session-Id", ""), None)
        return web.Response(status=404 if known is None else 200)


def _is_modern(request: web.Request) -> bool:
    return request.headers.get("MCP-Protocol-Version") == protocol.MODERN


def _json(
    message: Json, status: int | None = None, headers: Json | None = None, is_modern: bool = True
) -> web.Response:
    code = message.get("error", {}).get("code")
    mapped = STATUS_OF.get(code, 200) if is_modern else 200
    return web.json_response(message, status=status or mapped, headers=headers)


async def _stream(request: web.Request, queue: asyncio.Queue[Json]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    while True:
        await response.write(event(await queue.get()))


async def _say_nothing(message: Json) -> None:
    """An answer in JSON has no room for anything before it."""


async def main() -> None:
    options = arguments()
    await asyncio.sleep(options.start_delay)
    await HttpServer(options).serve()


if __name__ == "__main__":
    asyncio.run(main())
