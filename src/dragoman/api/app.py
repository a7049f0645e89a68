"""The REST door of one hub, without its guard: `POST /api/call` is answered here, FastAPI does the rest.

Whoever opens the hub closes it; `stop` ends the streams of events.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.metadata import version
from threading import Lock
from typing import Any

import orjson
from fastapi import Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.encoders import jsonable_encoder
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.api import (
    agents,
    approvals,
    audit,
    bundle_openapi,
    bundles,
    client_login,
    cluster,
    code,
    connectors,
    credentials,
    discovery,
    hooks,
    imports,
    messages,
    metrics,
    models,
    operations,
    people,
    queries,
    questions,
    recipes,
    resources,
    rollout,
    runs,
    search,
    threads,
    tool_loading,
    tools,
    usage,
)
from dragoman.api.calls import read_call, wants_events
from dragoman.api.events import STOPPING, event_stream
from dragoman.api.problems import HUB, add_problems
from dragoman.api.requests import CallRequest, request_body
from dragoman.api.tools import NAMED_CALL
from dragoman.errors import DragomanError
from dragoman.hints import speaking
from dragoman.hub import Hub
from dragoman.names import did_you_mean
from dragoman.telemetry.logs import get_logger
from dragoman.web.bodies import MAX_BODY, limited, read_body
from dragoman.web.guard import bound_hub, words_of
from dragoman.web.problems import InvalidRequest, WrongMethod, internal, problem

CALL = "/api/call"  # the hot path: nothing of FastAPI is between it and the road
_TEXT = "Tools of every connected server, behind one address. Errors are RFC 9457 problems."
_JSON = (b"content-type", b"application/json")


class Api:
    def __init__(self, hub: Hub, *, max_body: int = MAX_BODY) -> None:
        self._hub = hub
        self._max_body = max_body
        self._stopping = asyncio.Event()
        self._app = _operations()

    def stop(self) -> None:
        """Ends every stream of events, so that their connections can close."""
        self._stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        with speaking(words_of(scope)):
            if scope["path"] == CALL:
                await (self._call if scope["method"] == "POST" else _refuse)(scope, receive, send)
                return
            scope[HUB], scope[STOPPING] = self._hub, self._stopping
            try:
                await self._app(scope, limited(receive, self._max_body), send)
            except Exception:  # noqa: BLE001
                # boundary: the answer has been sent by the problem table; the log has the rest
                get_logger().exception("api.failed", path=scope["path"][:200])

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["query_string"]:
                _refuse_unknown(Request(scope).query_params, ())
            hub = bound_hub(self._hub, scope)
            call = read_call(hub, await read_body(receive, self._max_body))
            if _wants_events(scope):
                scope[STOPPING] = self._stopping
                await event_stream(Request(scope), *call.stream())(scope, receive, send)
                return
            answer = await call.make()
        except DragomanError as error:
            await problem(error)(scope, receive, send)
            return
        except Exception:  # noqa: BLE001
            # boundary: a fault of ours is the failure of one request and no more
            get_logger().exception("api.failed", path=CALL)
            await problem(internal())(scope, receive, send)
            return
        length = (b"content-length", b"%d" % len(answer))
        await send({"type": "http.response.start", "status": 200, "headers": [_JSON, length]})
        await send({"type": "http.response.body", "body": answer})


_WRITING = Lock()  # who comes while it is written waits for it, and does not write another


@cache
def _operations() -> FastAPI:
    """The same for every hub, which comes with the request: describing every operation takes a while."""
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
    for part in (connectors, search, tool_loading, tools, bundles, bundle_openapi, resources, operations):
        app.include_router(part.routes)
    for routes in (operations.probes, imports.routes, discovery.routes, discovery.aliases):
        app.include_router(routes)
    for part in (people, threads, approvals, credentials, usage, metrics, hooks, audit, code):
        app.include_router(part.routes)
    for part in (messages, runs, questions, agents, queries, recipes, models, rollout, cluster, client_login):
        app.include_router(part.routes)
    app.include_router(agents.aliases)
    app.add_route("/api/openapi.json", _document, include_in_schema=False)
    add_problems(app)
    return app


def _knows_every_parameter(request: Request) -> None:
    """What is unknown is refused: who limits a call in its address must not find that dropped."""
    # Probes and what others send a browser to may have parameters of their own.
    if (given := request.query_params) and request.url.path.startswith("/api/"):
        _refuse_unknown(given, {*_parameters(request.scope["route"].dependant)})


def _parameters(dependant: Dependant) -> Iterator[str]:
    """All that an operation, and what it depends on, reads of an address."""
    yield from (one.alias for one in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _refuse_unknown(given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            near = did_you_mean(name[:100], sorted(known))
            raise InvalidRequest(f"there is no parameter {name[:100]!r} in this address", hint=near)


async def _document(request: Request) -> Response:
    """Written once, and not while everybody waits: it takes a second."""
    return Response(await asyncio.to_thread(_written_document), media_type="application/json")


def _written_document() -> bytes:
    with _WRITING:
        return _document_bytes()


@cache
def _document_bytes() -> bytes:
    return orjson.dumps(_operations().openapi())


def _wants_events(scope: Scope) -> bool:
    return any(
        name == b"accept" and wants_events(value.decode("latin-1")) for name, value in scope["headers"]
    )


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    error = WrongMethod(
        f"{scope['method'][:20]} is not served at {CALL}", hint="GET /api/openapi.json lists what there is"
    )
    response = problem(error)
    response.headers["Allow"] = "POST"
    await response(scope, receive, send)


class _Documented(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """With the call that `Api` answers by itself: as that of a named tool, but for where the name is."""
        if self.openapi_schema is None:
            paths = super().openapi()["paths"]
            named = {key: value for key, value in paths[NAMED_CALL]["post"].items() if key != "parameters"}
            paths[CALL] = {
                "post": {
                    **named,
                    "summary": "Call Tool",
                    "operationId": "call_tool_api_call_post",
                    "requestBody": jsonable_encoder(request_body(CallRequest), exclude_none=True),
                }
            }
        return super().openapi()
