"""The console of one hub as an ASGI app: the session, then the page. Streams end with `stop`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from dragoman.console import (
    agents,
    approvals,
    audit,
    bundles,
    chat,
    clients,
    cluster,
    code,
    connectors,
    credentials,
    hooks,
    import_export,
    keys,
    log,
    menu,
    metrics,
    models,
    oidc,
    overview,
    palette,
    recipes,
    registry,
    runs,
    settings,
    sign_in,
    tools,
    users,
)
from dragoman.console.error_pages import of_error, shown
from dragoman.console.pages import HEADERS, Pages, is_part
from dragoman.console.session_rights import check_request
from dragoman.console.sessions import COOKIE, BrowserSessions
from dragoman.errors import Denied, DragomanError
from dragoman.hints import speaking
from dragoman.hub import Hub
from dragoman.telemetry.logs import get_logger
from dragoman.web.bodies import limited
from dragoman.web.guard import CREDENTIAL, Credential
from dragoman.web.standing_streams import StandingStreams

_PARTS = (
    sign_in, oidc, menu, palette, overview, chat, connectors, tools, bundles, hooks, code, agents, runs,
    recipes, approvals, credentials, keys, clients, users, audit, metrics, log, import_export, registry,
    cluster, settings, models,
)  # fmt: skip
ROUTES = [route for part in _PARTS for route in part.routes]
_OPEN = ("/sign-in", "/static/")
_MOST = 32 * 1024 * 1024
_MOST_OF_STRANGERS = 64 * 1024


class Console:
    def __init__(self, hub: Hub, sessions: BrowserSessions, streams: StandingStreams) -> None:
        self._acting_for = hub.acting_for
        self._menu = menu.Menu()
        self._streams = streams
        self.sessions = sessions
        pages = Pages()
        # Files alone are compressed: what is in a page beside a secret must not be guessed from its size.
        self._app = Starlette(routes=[*ROUTES, Route("/static/{name:path}", pages.files.answer)])
        self._app.state.hub = hub
        self._app.state.pages = pages
        self._app.state.sessions = self.sessions
        self._app.state.streams = streams
        self._app.add_exception_handler(404, _not_found)
        self._app.add_exception_handler(413, _too_large)
        self._app.add_exception_handler(DragomanError, _refused)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Ends every stream, so that their connections can close."""
        self._streams.stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope["app"] = self._app
        request = Request(scope, receive)
        receive = limited(receive, _limit_of(request))
        with speaking("command"):  # the template's filter `linked` makes links of commands
            await self._answered(request, receive, send)

    async def _answered(self, request: Request, receive: Receive, send: Send) -> None:
        scope = request.scope
        if not _is_open(request) and (refused := await self._refused(request)):
            await refused(scope, receive, _with_headers(send))
            return
        try:
            await self._app(scope, receive, _with_headers(send))
        except Exception:  # noqa: BLE001
            # boundary: a fault of ours is the failure of one page and no more
            get_logger().exception("console.failed", path=scope["path"][:200])

    async def _refused(self, request: Request) -> Response | None:
        """A stranger is asked to sign in; a change needs the session's own mark; a key needs its scope."""
        session = await self.sessions.find(request)
        if session is None:
            return _to_sign_in(request)
        cookie = request.cookies[COOKIE]
        request.scope[CREDENTIAL] = Credential(
            cookie, session.admission, partial(self.sessions.admission_of, cookie)
        )
        caller = session.admission.caller
        hub = self._acting_for(caller)
        person = (await hub.people.me()).person
        request.state.session = replace(session, name=person.user.name)
        if menu.wants_frame(request):
            request.state.frame = await self._menu.frame(hub, person.workspace.name)
        if request.method not in ("GET", "HEAD") and not session.allows(
            request.headers.get("x-csrf-token", "")
        ):
            return Response("This page is too old: load it again.", 403, media_type="text/plain")
        try:
            check_request(request)
        except Denied as error:
            return of_error(request, error)
        return None


def _is_open(request: Request) -> bool:
    return request.url.path.startswith(_OPEN)


def _limit_of(request: Request) -> int:
    """In bytes of a body."""
    return _MOST_OF_STRANGERS if _is_open(request) else _MOST


def _with_headers(send: Send) -> Send:
    return _adding(send, HEADERS)


def _adding(send: Send, headers: Mapping[str, str]) -> Send:
    """Those that the answer does not have already."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [*message.get("headers", ())]
            names = {name for name, _ in given}
            given += [(n.encode(), v.encode()) for n, v in headers.items() if n.encode() not in names]
            message = {**message, "headers": given}
        await send(message)

    return sending


def _to_sign_in(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    where = f"/sign-in?next={quote(request.url.path + query)}"
    if is_part(request):
        return Response(status_code=401, headers={"hx-redirect": where})
    if request.method != "GET" or "text/event-stream" in request.headers.get("accept", ""):
        return Response("Sign in first.", 401, media_type="text/plain")
    return RedirectResponse(where, 303)


async def _not_found(request: Request, error: Exception) -> Response:
    return shown(request, "There is no such page.", "The menu shows those there are.", 404)


async def _too_large(request: Request, error: Exception) -> Response:
    text = f"This is too large: at most {_limit_of(request) // 1024:,} KB can be sent."
    return shown(request, text, "Send less at once.", 413)


async def _refused(request: Request, error: DragomanError) -> Response:
    return of_error(request, error)
