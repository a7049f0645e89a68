"""A service that tells back every request exactly as it arrived, and serves the documents of a test."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], web.StreamResponse]


@dataclass
class Seen:
    """One request as bytes on the wire had it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)


@dataclass
class Echo:
    """`answers` by path come first; any other path but that of a document is told back as JSON."""

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    seen: list[Seen] = field(default_factory=list[Seen])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def serve(self, path: str, document: Any, **facts: Any) -> None:
        self.answers[path] = lambda request: web.json_response(document, **facts)

    def serve_text(
        self, path: str, text: str | bytes, content_type: str = "text/plain", status: int = 200
    ) -> None:
        body = text.encode() if isinstance(text, str) else text
        self.answers[path] = lambda request: web.Response(body=body, content_type=content_type, status=status)

    def calls(self, path: str) -> list[Seen]:
        return [one for one in self.seen if one.target.partition("?")[0] == path]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        seen = Seen(request.method, request.raw_path, [*request.headers.items()], body)
        self.seen.append(seen)
        self.arrived.set()
        if answer := self.answers.get(request.path):
            return answer(request)
        return web.json_response(
            {
                "method": seen.method,
                "target": seen.target,
                "headers": [[name, value] for name, value in seen.headers],
                "body": base64.b64encode(body).decode(),
            }
        )


@asynccontextmanager
async def open_echo() -> AsyncGenerator[Echo]:
    echo = Echo()
    app = web.Application(client_max_size=200 * 1024 * 1024)
    app.router.add_route("*", "/{tail:.*}", echo.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        echo.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield echo
    finally:
        await runner.cleanup()


def document(paths: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """A document of OpenAPI 3.0 unless said otherwise."""
    return {"openapi": "3.0.3", "info": {"title": "Test", "version": "1"}, "paths": paths, **facts}


def operation(name: str, **facts: Any) -> dict[str, Any]:
    return {"operationId": name, "responses": {"200": {"description": "ok"}}, **facts}
