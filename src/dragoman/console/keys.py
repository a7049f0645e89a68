"""`/keys`: ways in for programs. A key is shown once, where it is made. Admins see the users too."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import find_session, hub_of, pages_of
from dragoman.console.submitted_form import filled
from dragoman.errors import InvalidArguments
from dragoman.people import KEY_SCOPES, ApiKey, KeyScope
from dragoman.scope import Way

WAYS = {
    "direct": "a person or a program",
    "agent": "an agent: it asks first",
    "mcp": "an MCP client: it asks first",
}
SCOPES = {
    "read": "look at everything",
    "call": "call tools, write messages",
    "manage": "change connectors, agents, keys",
    "approve": "answer approvals and questions",
    "admin": "users, workspaces, audit",
}
LIVES = {"": "does not expire", "1": "one day", "30": "30 days", "90": "90 days", "365": "one year"}


async def show_all(request: Request) -> Response:
    return pages_of(request).page(request, "keys.html", title="API keys", **await _facts(request))


async def add(request: Request) -> Response:
    form, session = await filled(request), find_session(request)
    assert session is not None
    way = form.text("way") or "direct"
    if way not in WAYS:
        raise InvalidArguments(f"{way[:40]!r} is no way to come in", hint="choose one of the list")
    made, key = await hub_of(request).people.add_key(
        form.text("name"),
        user=form.text("user") or None,
        scopes=form.chosen("scope"),
        capabilities=form.words("capabilities") or None,
        expires_in=_life(form.text("life")),
        way=cast("Way", way),
        within=session.admission.scopes,
        workspace=place_of(request),
    )
    return await listed(request, made=made, key=key)


async def revoke(request: Request) -> Response:
    key = await hub_of(request).people.revoke_key(request.path_params["key"], place_of(request))
    return await listed(request, told=f"{key.name} opens nothing any more.")


# Parts


async def listed(request: Request, **facts: Any) -> Response:
    """Keys and users as they are now, for the page that is open."""
    return pages_of(request).part(request, "keys/list.html", **facts, **await _facts(request))


def place_of(request: Request) -> str | None:
    """The workspace that is looked at: who runs the installation may name another than their own."""
    return request.query_params.get("workspace") or None


def at_of(request: Request) -> str:
    """What keeps an address in that workspace."""
    place = place_of(request)
    return f"?{urlencode({'workspace': place})}" if place else ""


async def _facts(request: Request) -> dict[str, Any]:
    hub, session = hub_of(request), find_session(request)
    assert session is not None
    place = place_of(request)
    leads = hub.caller.is_admin and hub.settings.multi_user and "admin" in session.admission.scopes
    users = await hub.people.users(place) if leads else ()
    workspaces = await hub.people.workspaces() if leads and hub.caller.role == "operator" else ()
    return {
        "keys": await hub.people.keys(workspace=place),
        "users": users,
        "leads": leads,
        "workspaces": workspaces if len(workspaces) > 1 else (),
        "place": place or hub.caller.workspace,
        "is_own": place in (None, hub.caller.workspace),
        "at": at_of(request),
        "names": {user.id: user.name for user in users},
        "scopes": {one: SCOPES[one] for one in _known(session.admission.scopes)},
        "ways": WAYS
        if hub.caller.way == "direct"
        else {hub.caller.way: WAYS.get(hub.caller.way, hub.caller.way)},
        "lives": LIVES,
        "state_of": state_of,
    }


def _known(scopes: frozenset[KeyScope]) -> list[KeyScope]:
    """Nobody gives what they do not have."""
    return [scope for scope in KEY_SCOPES if scope in scopes]


def state_of(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= datetime.now(UTC) else "active"


def _life(days: str) -> timedelta | None:
    if days not in LIVES:
        raise InvalidArguments("this is no time that a key can live", hint="choose one of the list")
    return timedelta(days=int(days)) if days else None


routes = [
    Route("/keys", show_all),
    Route("/keys", add, methods=["POST"]),
    Route("/keys/{key}/revoke", revoke, methods=["POST"]),
]
