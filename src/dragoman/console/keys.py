"""`/keys`: ways in for programs. A key is shown once, where it is made."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import find_session, hub_of, pages_of
from dragoman.console.setting_forms import FormField, noun_changes, noun_fields
from dragoman.console.submitted_form import filled
from dragoman.errors import NotFound
from dragoman.people import ApiKey, KeyScope
from dragoman.setting import people_set

_SETTINGS = people_set(ApiKey)


async def show_all(request: Request) -> Response:
    return pages_of(request).page(request, "keys.html", title="API keys", **await _facts(request))


async def add(request: Request) -> Response:
    form, session = await filled(request), find_session(request)
    assert session is not None
    made, key = await hub_of(request).people.add_key(
        form.text("name"),
        user=form.text("user") or None,
        within=session.admission.scopes,
        workspace=place_of(request),
        **noun_changes(form.texts(), _SETTINGS, None),
    )
    return await listed(request, made=made, key=key)


async def show(request: Request) -> Response:
    key = await _key(request)
    fields, at = _fields(request, key), at_of(request)
    return pages_of(request).page(request, "keys/key.html", title=key.name, key=key, fields=fields, at=at)


async def save(request: Request) -> Response:
    form, session = await filled(request), find_session(request)
    assert session is not None
    key = await hub_of(request).people.update_key(
        request.path_params["key"],
        within=session.admission.scopes,
        workspace=place_of(request),
        **noun_changes(form.texts(), _SETTINGS, await _key(request)),
    )
    fields, at = _fields(request, key), at_of(request)
    told = "Saved. It holds from the next request on."
    return pages_of(request).part(request, "keys/key_settings.html", key=key, fields=fields, at=at, told=told)


async def revoke(request: Request) -> Response:
    key = await hub_of(request).people.revoke_key(request.path_params["key"], place_of(request))
    return await listed(request, told=f"{key.name} opens nothing any more.")


# Parts


async def _key(request: Request) -> ApiKey:
    wanted = request.path_params["key"]
    for key in await hub_of(request).people.keys(workspace=place_of(request)):
        if key.id == wanted:
            return key
    raise NotFound(f"there is no key {wanted[:80]!r}", hint="dragoman keys list shows yours")


def _fields(request: Request, key: ApiKey | None) -> list[FormField]:
    """Nobody is shown what they cannot give: a scope that the session has not, unless the key has it."""
    session = find_session(request)
    assert session is not None
    shown = session.admission.scopes | (frozenset[KeyScope]() if key is None else key.scopes)
    return [
        replace(field, options=tuple(one for one in field.options if one[0] in shown))
        if field.name == "scopes"
        else field
        for field in noun_fields(_SETTINGS, key)
    ]


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
        "fields": _fields(request, None),
        "state_of": state_of,
    }


def state_of(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= datetime.now(UTC) else "active"


routes = [
    Route("/keys", show_all),
    Route("/keys", add, methods=["POST"]),
    Route("/keys/{key}/settings", show),
    Route("/keys/{key}/settings", save, methods=["POST"]),
    Route("/keys/{key}/revoke", revoke, methods=["POST"]),
]
