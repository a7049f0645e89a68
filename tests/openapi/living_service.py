"""A real FastAPI service that changes while it runs. Its document has an ETag."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

from servers.ports import listen, served


class LivingService:
    """Routes come, change and go; `full` and `unchanged` count the answers about the document."""

    def __init__(self) -> None:
        self.app = FastAPI(title="Living", openapi_url=None, docs_url=None, redoc_url=None)
        self.port = 0
        self.full = 0
        self.unchanged = 0
        self.document_status = 200
        self.app.add_api_route("/openapi.json", self._document, include_in_schema=False)
        self._own = len(self.app.router.routes)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def put(self, path: str, function: Callable[..., Any], method: str = "GET") -> None:
        """Adds a route, or takes the place of the one with the same name."""
        self.remove(function.__name__)
        self.app.add_api_route(path, function, methods=[method], operation_id=function.__name__)
        self.app.openapi_schema = None

    def remove(self, name: str) -> None:
        routes = self.app.router.routes
        routes[:] = [route for route in routes if getattr(route, "operation_id", None) != name]
        self.app.openapi_schema = None

    async def _document(self, request: Request) -> Response:
        if self.document_status != 200:
            return Response(status_code=self.document_status)
        body = orjson.dumps(self.app.openapi())
        tag = f'"{sha256(body).hexdigest()[:16]}"'
        if request.headers.get("If-None-Match") == tag:
            self.unchanged += 1
            return Response(status_code=304, headers={"ETag": tag})
        self.full += 1
        return Response(body, media_type="application/json", headers={"ETag": tag})

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Listens, on the same port as before where there was one."""
        listener = listen(self.port)
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(self.app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        with listener:
            async with served(uvicorn.Server(config), listener):
                yield
