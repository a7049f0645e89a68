"""`/oauth/authorize`: a client asks, and a person says what it may have. `/clients`: what they allowed."""

from datetime import UTC, datetime
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dragoman.console.keys import at_of, place_of, state_of
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.places import AUTHORIZE
from dragoman.console.setting_forms import noun_changes, noun_fields
from dragoman.console.settings import WORDS
from dragoman.console.submitted_form import filled
from dragoman.hub import logins_of
from dragoman.hub.client_logins import (
    PERIODS,
    AuthorizationRequest,
    ClientChoice,
    Period,
    WrongAuthorizationRequest,
    slug_of,
)
from dragoman.hub.oauth_clients import is_loopback
from dragoman.hub.oauth_clients import place_of as redirect_place
from dragoman.people import ApiKey
from dragoman.scope import ANY_TOOL, BUNDLE, READ_ONLY
from dragoman.setting import people_set
from dragoman.web.protected_resources import base_of

_LIMITS = tuple(one for one in people_set(ApiKey) if one.path[0] == "limits")


async def ask(request: Request) -> Response:
    try:
        asked = await _asked(request)
    except WrongAuthorizationRequest as wrong:
        return RedirectResponse(wrong.location, 302)
    logins = logins_of(hub_of(request))
    before = await logins.allowed_before(asked)
    now = datetime.now(UTC)
    return pages_of(request).page(
        request,
        "consent.html",
        title=f"Allow {asked.client.name}?",
        asked=asked,
        before=before,
        chosen=_chosen_before(before),
        connectors=await logins.offered(asked),
        slug=slug_of(asked.path),
        is_here=is_loopback(asked.redirect_uri),
        redirect=redirect_place(asked.redirect_uri),
        ends={name: None if period is None else now + period for name, period in PERIODS.items()},
        address=f"{AUTHORIZE}?{request.url.query}",
    )


async def answer(request: Request) -> Response:
    """Only with the session's own mark, as every change: another site's form has none."""
    form, base = await filled(request), base_of(hub_of(request).settings, request.scope)
    logins = logins_of(hub_of(request))
    try:
        asked = await _asked(request)
        if form.text("answer") == "allow":
            location = await logins.allow(asked, _choice(form.text, form.chosen("connector")), base)
        else:
            location = await logins.deny(asked, base)
    except WrongAuthorizationRequest as wrong:
        location = wrong.location
    if is_part(request):
        return Response(status_code=204, headers={"hx-redirect": location})
    return RedirectResponse(location, 303)


async def show_all(request: Request) -> Response:
    return pages_of(request).page(request, "clients.html", title="Clients", **await _facts(request))


async def show(request: Request) -> Response:
    facts = await _client_facts(request, await _client(request))
    return pages_of(request).page(request, "clients/client.html", title=facts["client"].name, **facts)


async def save(request: Request) -> Response:
    changes = noun_changes((await filled(request)).texts(), _LIMITS, await _client(request))
    client = await hub_of(request).clients.update(
        request.path_params["client"], limits=changes.get("limits", {}), workspace=place_of(request)
    )
    told = "Saved. It holds from the next call on."
    facts = await _client_facts(request, client)
    return pages_of(request).part(request, "clients/limits.html", told=told, **facts)


async def revoke(request: Request) -> Response:
    key = await hub_of(request).clients.revoke(request.path_params["client"], place_of(request))
    facts = await _facts(request)
    told = f"{key.name} can use nothing any more."
    return pages_of(request).part(request, "clients/list.html", told=told, **facts)


async def rotate(request: Request) -> Response:
    """The hub asks who may: who does not operate it is refused there."""
    await filled(request)
    key = await hub_of(request).clients.rotate()
    told = f"The key {key} signs from now on. What was signed before is good until it ends."
    return pages_of(request).part(request, "clients/list.html", told=told, **await _facts(request))


# Parts


async def _asked(request: Request) -> AuthorizationRequest:
    hub = hub_of(request)
    return await logins_of(hub).read_request(
        request.query_params.multi_items(), base_of(hub.settings, request.scope)
    )


def _choice(text: Any, connectors: Any) -> ClientChoice:
    """What is not said is the least."""
    period: Any = text("period")
    return ClientChoice(
        connectors=None if text("use") == "all" else frozenset(connectors),
        only_reads=text("do") != "write",
        period=period if period in get_args(Period) else "hour",
    )


def _chosen_before(before: ApiKey | None) -> frozenset[str]:
    """What this client was given the last time, as the form has it."""
    words = (before.capabilities if before else None) or frozenset[str]()
    slugs = {
        word.removeprefix("mcp_") for word in words if word.startswith(("mcp_", BUNDLE)) and word != ANY_TOOL
    }
    marks = {mark for mark, word in (("*", ANY_TOOL), ("-", READ_ONLY)) if word in words}
    return frozenset(slugs | marks)


async def _client(request: Request) -> ApiKey:
    return await hub_of(request).clients.get(request.path_params["client"], place_of(request))


def _limit_texts(key: ApiKey) -> list[str]:
    """As “100 calls an hour”."""
    return [f"{limit:,g} {one.label.lower()}" for one in _LIMITS if (limit := one.of(key)) is not None]


async def _client_facts(request: Request, client: ApiKey) -> dict[str, Any]:
    usage = await hub_of(request).usage.of_key(client)
    fields = noun_fields(_LIMITS, client)
    return {"client": client, "usage": usage, "fields": fields, "words": WORDS, "at": at_of(request)}


async def _facts(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    keys = await hub.clients.list(workspace=place_of(request))
    names = {key.user: await hub.people.name_of(key.workspace, key.user) for key in keys}
    return {
        "clients": keys,
        "names": names,
        "is_of_many": hub.caller.is_admin and hub.settings.multi_user,
        "at": at_of(request),
        "state_of": state_of,
        "chosen_before": _chosen_before,
        "limits": {key.id: _limit_texts(key) for key in keys},
        "address": f"{base_of(hub.settings, request.scope)}/mcp",
        "is_offered": hub.settings.client_login == "dragoman",
    }


routes = [
    Route(AUTHORIZE, ask),
    Route(AUTHORIZE, answer, methods=["POST"]),
    Route("/clients", show_all),
    Route("/clients/-/rotate", rotate, methods=["POST"]),
    Route("/clients/{client}/settings", show),
    Route("/clients/{client}/settings", save, methods=["POST"]),
    Route("/clients/{client}/revoke", revoke, methods=["POST"]),
]
