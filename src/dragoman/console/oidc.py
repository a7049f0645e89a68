"""Signing in at the outside issuer: there and back. What must stay secret meanwhile is in a sealed cookie."""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict
from hmac import compare_digest
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dragoman.console.pages import hub_of
from dragoman.console.sessions import BrowserSessions
from dragoman.console.sign_in import next_of, show_form
from dragoman.errors import DragomanError, NotFound
from dragoman.identity.sign_in import SignIn, StartedSignIn

COOKIE = "dragoman_sign_in"
LASTS = 600
_PATH = "/sign-in/oidc"
_PLACE = ("console", "sign-in")
_OVER = "This sign-in is over or was begun in another browser. Try again."


async def begin(request: Request) -> Response:
    begun = await _sign_in(request).begin(_back(request))
    facts = {
        **asdict(begun),
        "next": next_of(request.query_params.get("next")),
        "adds": "add" in request.query_params,
        "until": int(time.time()) + LASTS,
    }
    sealed = hub_of(request).seal(json.dumps(facts).encode(), *_PLACE)
    response = RedirectResponse(begun.address, 303)
    response.set_cookie(
        COOKIE,
        urlsafe_b64encode(sealed).decode(),
        max_age=LASTS,
        httponly=True,
        samesite="lax",
        secure=_sessions(request).is_secure,
        path=_PATH,
    )
    return response


async def finish(request: Request) -> Response:
    """Only for the browser that began it, and once: the state is compared before the code is used."""
    response = await _finished(request)
    response.delete_cookie(COOKIE, path=_PATH)
    return response


async def _finished(request: Request) -> Response:
    asked, facts = request.query_params, _kept(request)
    sign_in = _sign_in(request)
    if facts is None or not compare_digest(facts["state"].encode(), asked.get("state", "").encode()):
        return show_form(request, _OVER, status=401)
    if not sign_in.is_from(asked.get("iss", "")) and "iss" in asked:
        return show_form(request, _OVER, status=401)
    if "error" in asked or not asked.get("code"):
        said = asked.get("error", "no code")[:100]
        return show_form(request, f"{sign_in.name} did not sign you in: {said}.", status=401)
    begun = StartedSignIn(facts["address"], facts["state"], facts["nonce"], facts["verifier"])
    try:
        admission = await sign_in.finish(asked["code"], _back(request), begun)
    except DragomanError as error:
        return show_form(request, f"{error.message[:1].upper()}{error.message[1:]}.", status=401)
    response = RedirectResponse(next_of(facts["next"]), 303)
    await _sessions(request).begin_for(response, admission, request if facts.get("adds") else None)
    return response


# Parts


def _sessions(request: Request) -> BrowserSessions:
    return request.app.state.sessions


def _sign_in(request: Request) -> SignIn:
    found = hub_of(request).authenticator.sign_in
    if found is None:
        raise NotFound("nobody is signed in elsewhere for this service", hint="use a key")
    return found


def _back(request: Request) -> str:
    """The issuer knows it beforehand: the public address, or that by which the browser came."""
    return (hub_of(request).settings.public_url or str(request.base_url)).rstrip("/") + _PATH + "/done"


def _kept(request: Request) -> dict[str, Any] | None:
    try:
        sealed = urlsafe_b64decode(request.cookies.get(COOKIE, ""))
        facts = json.loads(hub_of(request).unseal(sealed, *_PLACE))
        return facts if facts["until"] > time.time() else None
    except (DragomanError, ValueError, KeyError, TypeError):
        return None


routes = [Route(_PATH, begin), Route(f"{_PATH}/done", finish)]
