"""A raw MCP server over the legacy SSE transport: `GET /sse` opens, `POST /messages` sends."""

import argparse
import asyncio
import json
import os
from uuid import uuid4

import protocol
from aiohttp import web
from exchange import Exchange, event
from toolbox import CHANGES_LIST, Json, Log, Toolbox


class SseServer:
    """One listening process. Each open stream is a session; its queue takes answers and notifications."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._log = Log(options.log)
        self._exchange = Exchange(Toolbox(options.journal), self._log)
        self._sessions: dict[str, asyncio.Queue[Json]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/sse", self._open)
        app.router.add_post("/messages", self._receive)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._options.port, reuse_address=True).start()
        with open(self._options.port_file + ".new", "w") as file:
            file.write(str(runner.addresses[0][1]))
        os.replace(self._options.port_file + ".new", self._options.port_file)
        self._log.write("start")
        await asyncio.Event().wait()

    async def _open(self, request: web.Request) -> web.StreamResponse:
        session, queue = uuid4().hex, asyncio.Queue[Json]()
        self._sessions[session] = queue
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"event: endpoint\ndata: /messages?session_id={session}\n\n".encode())
        try:
            while True:
                await response.write(event(await queue.get()))
        finally:
            del self._sessions[session]

    async def _receive(self, request: web.Request) -> web.Response:
        session = request.query.get("session_id", "")
        queue = self._sessions.get(session)
        if queue is None:
            return web.Response(status=404, text="Could not find session")
        message: Json = json.loads(await request.read())
        if "id" in message and "method" in message:
            task = asyncio.ensure_future(self._answer(message, session, queue))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return web.Response(status=202, text="Accepted")

    async def _answer(self, message: Json, session: str, queue: asyncio.Queue[Json]) -> None:
        answer = await self._exchange.answer(message, session, False, queue.put)
        queue.put_nowait(answer)
        if (message.get("params") or {}).get("name") in CHANGES_LIST:
            for other in self._sessions.values():
                other.put_nowait(protocol.list_changed())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--journal")
    parser.add_argument("--log")
    asyncio.run(SseServer(parser.parse_args()).serve())


if __name__ == "__main__":
    main()
