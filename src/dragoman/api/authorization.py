"""The pages of an authorisation: what is about to happen, the way to the server, the way back.

Open to anybody who has a link: who they act for is in the sealed ticket, never in the request. No script.
"""

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dragoman.api.requests import TheHub
from dragoman.connections.oauth import AuthorizationCallback
from dragoman.connections.oauth.clients import client_document
from dragoman.errors import CallerFault, DragomanError, NotFound
from dragoman.hints import worded
from dragoman.web.encoding import json_response
from dragoman.web.problems import status_of

pages = APIRouter(prefix="/oauth", include_in_schema=False)

_LASTS = 600
_LONGEST_FORM = 16 * 1024
_PLAIN_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;color:#1d1d1f}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dt{color:#6e6e73}dd{margin:0;"
    "overflow-wrap:anywhere}button{font:inherit;padding:.6rem 1.4rem;border:0;border-radius:.5rem;"
    "background:#0b57d0;color:#fff;cursor:pointer}small{color:#6e6e73}"
)


def address_of(request: Request) -> str | None:
    """How this request reached us, as a browser could; None inside a process without a socket."""
    server = request.scope.get("server")
    if not server or not server[1]:
        return None
    return str(request.base_url).rstrip("/")


@pages.get("/start")
async def ask(hub: TheHub, ticket: str = "") -> Response:
    """Says who is about to connect what, and waits for a person's click."""
    try:
        asked = await hub.credentials.asked(ticket)
    except DragomanError as error:
        return _failure(error)
    facts = {
        "connector": f"{asked.connector} ({asked.server})",
        "for the user": asked.user,
        "of the workspace": asked.workspace,
        "authorised by": asked.issuer,
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return _page(
        "Connect an account",
        f"<p>Dragoman asks for access to an account of yours.</p><dl>{rows}</dl>"
        '<form method="post" action="start">'
        f'<input type="hidden" name="ticket" value="{escape(ticket)}">'
        "<p><button>Continue</button></p></form>"
        "<p><small>Did somebody send you this link? Then your account would serve them: close this page."
        "</small></p>",
        sends_to=_origin(asked.issuer),
    )


@pages.post("/start")
async def begin(request: Request, hub: TheHub) -> Response:
    try:
        begun = await hub.credentials.begin(await _ticket_in(request))
    except DragomanError as error:
        return _failure(error)
    response = RedirectResponse(begun.url, 303, {"Cache-Control": "no-store"})
    response.set_cookie(
        begun.cookie,
        begun.value,
        max_age=_LASTS,
        path=begun.path,
        secure=begun.is_secure,
        httponly=True,
        samesite="lax",
    )
    return response


@pages.get("/callback")
async def come_back(
    request: Request,
    hub: TheHub,
    state: str = "",
    code: str | None = None,
    iss: str | None = None,
    error: str | None = None,
) -> Response:
    try:
        connector = await hub.credentials.finish(
            AuthorizationCallback(state, code, iss, error, request.cookies)
        )
    except DragomanError as fault:
        return _failure(fault)
    return _page(
        "Connected",
        f"<p><b>{escape(connector)}</b> is connected. You can close this page.</p>",
    )


@pages.get("/client.json")
async def describe_client(hub: TheHub) -> Response:
    """Who we are, for authorisation servers that look it up instead of registering us."""
    public = hub.credentials.public_url
    if public is None or not public.startswith("https://"):
        raise NotFound("this service has no public address", hint="DRAGOMAN_PUBLIC_URL says it")
    return json_response(client_document(public), headers={"Cache-Control": "public, max-age=3600"})


async def _ticket_in(request: Request) -> str:
    """The one field of our own form; read by hand, since nothing else needs a parser of forms."""
    body = await request.body()
    if len(body) > _LONGEST_FORM:
        raise CallerFault("this form is too large")
    return parse_qs(body.decode("utf-8", "replace")).get("ticket", [""])[0]


def _origin(address: str) -> str:
    """As a source in a policy; empty for what could end the policy early."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    return origin if _PLAIN_ORIGIN.fullmatch(origin) else ""


def _failure(error: DragomanError) -> Response:
    plain = worded(error.command_hint, "plain")
    hint = f"<p><small>{escape(plain)}</small></p>" if plain else ""
    return _page("It did not work", f"<p>{escape(error.message)}</p>{hint}", status=status_of(error))


def _page(title: str, body: str, *, status: int = 200, sends_to: str = "") -> Response:
    style = b64encode(sha256(_STYLE.encode()).digest()).decode()
    # A browser applies form-action to redirects after the form too: to the issuer, and wherever it signs in.
    policy = (
        f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; frame-ancestors 'none';"
        f" form-action 'self' https: {sends_to}"
    )
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)} · Dragoman</title>"
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>",
        status,
        {
            "Content-Security-Policy": policy.strip(),
            # Not no-referrer: the form's own Origin would be null then, and the guard refuses it.
            "Referrer-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )
