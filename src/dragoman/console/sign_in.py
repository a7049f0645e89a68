"""Signing in and out: by the link that `serve` prints, by an API key, or by the service's own token."""

from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, pages_of
from dragoman.console.sessions import BrowserSessions
from dragoman.errors import Unauthenticated
from dragoman.web.guard import CALLER


def _sessions(request: Request) -> BrowserSessions:
    return request.app.state.sessions


async def sign_in(request: Request) -> Response:
    """The form; with `code`, the link that works once. Who has signed in meanwhile goes on."""
    code = request.query_params.get("code")
    if code is None:
        asked = request.query_params
        if "next" in asked and "add" not in asked and await _sessions(request).find(request):
            return RedirectResponse(next_of(asked["next"]), 303)
        return show_form(request)
    token = await _sessions(request).take_link(code)
    if token is None:
        return show_form(request, "This link was used already, or is too old.", status=401)
    response = RedirectResponse(next_of(request.query_params.get("next")), 303)
    await _sessions(request).begin(response, token)
    return response


async def take_key(request: Request) -> Response:
    """What was typed is looked at and kept sealed in the cookie; it is never shown again."""
    form = await request.form()
    token, where = str(form.get("key") or "").strip(), str(form.get("next") or "/")
    response = RedirectResponse(next_of(where), 303)
    try:
        await _sessions(request).begin(response, token, request if form.get("add") else None)
    except Unauthenticated:
        return show_form(request, "This key is wrong, has expired, or was revoked.", 401, where)
    return response


async def sign_out(request: Request) -> Response:
    next = request.query_params.get("next")
    where = f"/sign-in?{urlencode({'next': next_of(next)})}" if next else "/sign-in"
    response = Response(status_code=204, headers={"hx-redirect": where})
    await _sessions(request).end(response, request, request.state.session)
    return response


async def switch(request: Request) -> Response:
    """To another workspace that this browser is signed in to."""
    form, response = await request.form(), Response(status_code=204, headers={"hx-redirect": "/"})
    if not await _sessions(request).switch(response, request, str(form.get("to") or "")):
        return Response(status_code=204, headers={"hx-redirect": "/sign-in?add=yes"})
    return response


async def make_link(request: Request) -> Response:
    """A link that signs in, once, whoever gave this request their key: for a command that opens a browser."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("the bearer token is missing", hint="dragoman console sends it by itself")
    code = await _sessions(request).make_link(token.strip(), request.scope[CALLER])
    return JSONResponse({"path": f"/sign-in?code={code}"})


def show_form(request: Request, message: str = "", status: int = 200, where: str | None = None) -> Response:
    settings, elsewhere = hub_of(request).settings, hub_of(request).authenticator.sign_in
    return pages_of(request).page(
        request,
        "sign_in.html",
        title="Sign in",
        status=status,
        message=message,
        next=next_of(where or request.query_params.get("next")),
        multi_user=settings.multi_user,
        adds="add" in request.query_params,
        elsewhere=elsewhere.name if elsewhere else None,
    )


def next_of(where: str | None) -> str:
    """A path of ours and nothing else: a link must not lead elsewhere."""
    try:
        parts = urlsplit(where or "/")
    except ValueError:
        return "/"
    is_ours = not parts.scheme and not parts.netloc and parts.path.startswith("/")
    if not is_ours or parts.path.startswith("//"):
        return "/"
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


routes = [
    Route("/sign-in", sign_in),
    Route("/sign-in", take_key, methods=["POST"]),
    Route("/sign-in/links", make_link, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
    Route("/switch", switch, methods=["POST"]),
]
