"""`/keys`: ways in for programs. A key is shown once, where it is made. Admins see the users too."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.filled import filled
from dragoman.console.pages import caller_of, find_session, hub_of, pages_of
from dragoman.console.rights import check_scope
from dragoman.errors import InvalidArguments
from dragoman.people import KEY_SCOPES, ApiKey, KeyScope, UserRole
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
_ROLES: tuple[UserRole, ...] = get_args(UserRole)


async def show_all(request: Request) -> Response:
    return pages_of(request).page(request, "keys.html", title="API keys", **await _facts(request))


async def add(request: Request) -> Response:
    check_scope(request, "manage")
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
        caller=caller_of(request),
    )
    return _part(request, "keys/list.html", made=made, key=key, **await _facts(request))


async def revoke(request: Request) -> Response:
    check_scope(request, "manage")
    key = await hub_of(request).people.revoke_key(request.path_params["key"], caller=caller_of(request))
    return _part(
        request, "keys/list.html", told=f"{key.name} opens nothing any more.", **await _facts(request)
    )


async def add_user(request: Request) -> Response:
    check_scope(request, "admin")
    form = await filled(request)
    user = await hub_of(request).people.add_user(
        form.text("name"), role=_role(form.text("role")), caller=caller_of(request)
    )
    told = f"{user.name} is a user now. Make them a key to sign in with."
    return _part(request, "keys/list.html", told=told, **await _facts(request))


async def change_user(request: Request) -> Response:
    check_scope(request, "admin")
    form, people, caller = await filled(request), hub_of(request).people, caller_of(request)
    role, active = form.text("role"), form.text("active")
    user = await people.update_user(
        request.path_params["user"],
        role=_role(role) if role else None,
        is_active=active == "yes" if active else None,
        caller=caller,
    )
    told = f"{user.name} is {user.role if user.is_active else 'shut out'} now."
    return _part(request, "keys/list.html", told=told, **await _facts(request))


async def remove_user(request: Request) -> Response:
    check_scope(request, "admin")
    await hub_of(request).people.remove_user(request.path_params["user"], caller=caller_of(request))
    return _part(
        request, "keys/list.html", told="Removed, with all that was theirs.", **await _facts(request)
    )


# Parts


async def _facts(request: Request) -> dict[str, Any]:
    hub, caller, session = hub_of(request), caller_of(request), find_session(request)
    assert session is not None
    leads = caller.is_admin and hub.settings.multi_user and "admin" in session.admission.scopes
    users = await hub.people.users(caller=caller) if leads else ()
    return {
        "keys": await hub.people.keys(caller=caller),
        "users": users,
        "leads": leads,
        "names": {user.id: user.name for user in users},
        "scopes": {one: SCOPES[one] for one in _known(session.admission.scopes)},
        "ways": WAYS if caller.way == "direct" else {caller.way: WAYS.get(caller.way, caller.way)},
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


def _role(text: str) -> UserRole:
    for role in _ROLES:
        if text == role:
            return role
    raise InvalidArguments(f"{text[:40]!r} is no role", hint=f"there are: {', '.join(_ROLES)}")


def _part(request: Request, template: str, **facts: Any) -> Response:
    return pages_of(request).part(request, template, **facts)


routes = [
    Route("/keys", show_all),
    Route("/keys", add, methods=["POST"]),
    Route("/keys/users", add_user, methods=["POST"]),
    Route("/keys/users/{user}", change_user, methods=["POST"]),
    Route("/keys/users/{user}/remove", remove_user, methods=["POST"]),
    Route("/keys/{key}/revoke", revoke, methods=["POST"]),
]
