"""The REST door of one hub, without its guard: `POST /api/call` and the probes are answered here.

Everything else is FastAPI's, which is loaded with the first request for it (`route_groups`), beside the loop.
Whoever opens the hub closes it; `stop` ends the streams of events.
"""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.api.calls import CALL, read_call, refuse_unknown, wants_events
from dragoman.api.events import event_stream
from dragoman.api.probes import HEALTH, READY, health, readiness
from dragoman.api.route_groups import Part, parts_at, place_of
from dragoman.errors import DragomanError
from dragoman.hints import speaking
from dragoman.hub import Hub
from dragoman.loading import beside
from dragoman.telemetry.logs import get_logger
from dragoman.web.bodies import MAX_BODY, limited, read_body
from dragoman.web.guard import HUB, bound_hub, words_of
from dragoman.web.problems import WrongMethod, internal, problem
from dragoman.web.standing_streams import STREAMS, StandingStreams

_JSON = (b"content-type", b"application/json")


class Api:
    def __init__(self, hub: Hub, *, max_body: int = MAX_BODY, streams: StandingStreams | None = None) -> None:
        self._hub = hub
        self._max_body = max_body
        self.streams = streams or StandingStreams(hub.settings.max_streams_per_user)
        self._groups: dict[tuple[Part, ...], ASGIApp] = {}

    def stop(self) -> None:
        """Ends every stream of events, so that their connections can close."""
        self.streams.stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        with speaking(words_of(scope)):
            if scope["path"] == CALL:
                await (self._call if scope["method"] == "POST" else _refuse)(scope, receive, send)
                return
            if scope["method"] == "GET" and scope["path"] in (HEALTH, READY):
                await (await self._probe(scope))(scope, receive, send)
                return
            scope[HUB], scope[STREAMS] = self._hub, self.streams
            try:
                app = await self._operations_at(scope["path"])
            except Exception:  # noqa: BLE001
                # boundary: what cannot be loaded now, as no file can be opened, may be with the next request
                get_logger().exception("api.failed", path=scope["path"][:200])
                await problem(internal())(scope, receive, send)
                return
            try:
                await app(scope, limited(receive, self._max_body), send)
            except Exception:  # noqa: BLE001
                # boundary: the answer has been sent by the problem table; the log has the rest
                get_logger().exception("api.failed", path=scope["path"][:200])

    async def _operations_at(self, path: str) -> ASGIApp:
        """Those that may be asked for by this path."""
        parts = parts_at(place_of(path))
        if parts not in self._groups:
            self._groups[parts] = await beside(partial(_operations, parts))
        return self._groups[parts]

    async def _probe(self, scope: Scope) -> Response:
        if scope["path"] == HEALTH:
            return health()
        try:
            return await readiness(bound_hub(self._hub, scope))
        except DragomanError as error:
            return problem(error)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["query_string"]:
                refuse_unknown(Request(scope).query_params, ())
            hub = bound_hub(self._hub, scope)
            call = read_call(hub, await read_body(receive, self._max_body))
            if _wants_events(scope):
                scope[STREAMS] = self.streams
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


def _operations(parts: tuple[Part, ...]) -> ASGIApp:
    from dragoman.api.operations_app import operations

    return operations(parts)


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
