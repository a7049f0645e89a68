"""The operations of the REST door as FastAPI has them. Importing this takes a third of a second."""

import asyncio
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import version
from threading import Lock
from typing import Any

import orjson
from fastapi import Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.encoders import jsonable_encoder
from starlette.requests import Request
from starlette.responses import Response

from dragoman.api.calls import CALL, refuse_unknown
from dragoman.api.problems import add_problems
from dragoman.api.requests import CallRequest, request_body
from dragoman.api.route_groups import PARTS, Part

_TEXT = "Tools of every connected server, behind one address. Errors are RFC 9457 problems."
_NAMED_CALL = "/api/tools/{name}/call"  # as the OpenAPI document writes it
_WRITING = Lock()  # who comes while it is written waits for it, and does not write another


@cache
def operations(parts: tuple[Part, ...] = PARTS) -> FastAPI:
    """The same for every hub, which comes with the request."""
    # No documentation page: FastAPI's own would load its parts from somewhere else.
    app = _Documented(
        title="Dragoman",
        version=version("dragoman"),
        description=_TEXT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(_knows_every_parameter)],
    )
    for part in parts:
        app.include_router(getattr(import_module(f"dragoman.api.{part.module}"), part.name))
    app.add_route("/api/openapi.json", _document, include_in_schema=False)
    add_problems(app)
    return app


async def _document(request: Request) -> Response:
    """Written once, and not while everybody waits: it takes a second."""
    return Response(await asyncio.to_thread(_written_document), media_type="application/json")


def _written_document() -> bytes:
    with _WRITING:
        return _document_bytes()


@cache
def _document_bytes() -> bytes:
    return orjson.dumps(operations().openapi())


def _knows_every_parameter(request: Request) -> None:
    """What is unknown is refused: who limits a call in its address must not find that dropped."""
    # Probes and what others send a browser to may have parameters of their own.
    if (given := request.query_params) and request.url.path.startswith("/api/"):
        refuse_unknown(given, {*_parameters(request.scope["route"].dependant)})


def _parameters(dependant: Dependant) -> Iterator[str]:
    """All that an operation, and what it depends on, reads of an address."""
    yield from (one.alias for one in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _parameters(inner)


class _Documented(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """With the call that `Api` answers by itself: as that of a named tool, but for where the name is."""
        if self.openapi_schema is None:
            paths = super().openapi()["paths"]
            named = {key: value for key, value in paths[_NAMED_CALL]["post"].items() if key != "parameters"}
            paths[CALL] = {
                "post": {
                    **named,
                    "summary": "Call Tool",
                    "operationId": "call_tool_api_call_post",
                    "requestBody": jsonable_encoder(request_body(CallRequest), exclude_none=True),
                }
            }
        return super().openapi()
