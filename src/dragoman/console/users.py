"""`/users`: who may come in, what they used, with what and how much. For admins of a workspace."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.charts import cost
from dragoman.console.keys import at_of, place_of
from dragoman.console.listing import has_words, page_of
from dragoman.console.metrics import charts_about
from dragoman.console.pages import find_session, hub_of, is_part, pages_of
from dragoman.console.session_rights import check_scope
from dragoman.console.setting_forms import noun_changes, noun_fields
from dragoman.console.submitted_form import filled
from dragoman.hub import BoundHub
from dragoman.hub.statistics import MetricNumbers
from dragoman.people import User
from dragoman.setting import people_set

_SETTINGS = people_set(User)
_MOST = 1000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


async def show_all(request: Request) -> Response:
    check_scope(request, "admin")
    facts = await _all(request)
    if is_part(request):
        return pages_of(request).part(request, "users/list.html", **facts)
    return pages_of(request).page(request, "users.html", title="Users", **facts)


async def _all(request: Request) -> dict[str, Any]:
    hub, place = hub_of(request), place_of(request)
    words = request.query_params.get("q", "")[:100].lower().split()
    users = await hub.people.users(place)
    found = [user for user in users if has_words(f"{user.name} {user.email or ''} {user.role}", words)]
    page = page_of(found, lambda user: (0.0, user.name.lower()), request.query_params.get("after", ""))
    workspace = await hub.people.get_workspace(place or hub.caller.workspace)
    is_own = workspace.id == hub.caller.workspace
    numbers = await _numbers(hub) if is_own else {}
    seen: dict[str, datetime] = {}
    for key in await hub.people.keys(workspace=place):
        if key.last_used_at and key.last_used_at > seen.get(key.user, _LONG_AGO):
            seen[key.user] = key.last_used_at
    if is_own:
        for user in page.shown:
            for entry in await hub.audit.list(user=user.id, limit=1):
                seen[user.id] = max(entry.time, seen.get(user.id, _LONG_AGO))
    workspaces = await hub.people.workspaces() if hub.caller.role == "operator" else ()
    return {
        "page": page,
        "query": " ".join(words),
        "count": len(users),
        "numbers": numbers,
        "limits": {user.id: workspace.limits.narrowed_by(user.limits) for user in page.shown},
        "seen": seen,
        "cost": cost,
        "workspace": workspace,
        "workspaces": workspaces if len(workspaces) > 1 else (),
        "at": at_of(request),
        "can_invite": is_own,
    }


async def _numbers(hub: BoundHub) -> dict[str, MetricNumbers]:
    """Of the last day."""
    series = await hub.statistics.series("24h", split="user", groups=_MOST, with_points=False)
    return {group.name: group.numbers for group in series.groups}


async def listed(request: Request, **facts: Any) -> Response:
    """The users as they are now, for the page that is open."""
    return pages_of(request).part(request, "users/list.html", **facts, **await _all(request))


async def invite(request: Request) -> Response:
    """A link that signs them in once, within the hour, with a new key of theirs behind it."""
    hub, session = hub_of(request), find_session(request)
    assert session is not None
    user = await _user(request)
    made, key = await hub.people.add_key(
        "Invitation", user=user.id, workspace=place_of(request), within=session.admission.scopes
    )
    code = await request.app.state.sessions.make_link(key, hub.caller)
    link = f"{str(request.base_url).rstrip('/')}/sign-in?code={code}"
    return await listed(request, invited=user, link=link, made=made)


async def show(request: Request) -> Response:
    check_scope(request, "admin")
    user = await _user(request)
    facts = await _facts(request, user)
    if user.workspace == hub_of(request).caller.workspace:
        facts |= await charts_about(request, user=user.id)
    return pages_of(request).page(request, "keys/user.html", title=user.name, **facts)


async def add(request: Request) -> Response:
    form = await filled(request)
    user = await hub_of(request).people.add_user(
        form.text("name"),
        workspace=place_of(request),
        **noun_changes(form.texts(), _SETTINGS, None),
    )
    return await listed(
        request, told=f"{user.name} is a user now. Invite them with a link, or make them a key."
    )


async def change(request: Request) -> Response:
    """From the list: role, and whether they come in at all."""
    user = await _changed(request)
    return await listed(request, told=f"{user.name} is {user.role if user.is_active else 'suspended'} now.")


async def save(request: Request) -> Response:
    """From the user's own page: what they reach, and how much of it."""
    facts = await _facts(request, await _changed(request))
    return pages_of(request).part(
        request, "keys/limits.html", told="Saved. It holds from the next call on.", **facts
    )


async def _changed(request: Request) -> User:
    changes = noun_changes((await filled(request)).texts(), _SETTINGS, user := await _user(request))
    return await hub_of(request).people.update_user(user.id, workspace=place_of(request), **changes)


async def remove(request: Request) -> Response:
    await hub_of(request).people.remove_user(request.path_params["user"], place_of(request))
    return await listed(request, told="Removed, with all that was theirs.")


async def _user(request: Request) -> User:
    return await hub_of(request).people.get_user(request.path_params["user"], place_of(request))


async def _facts(request: Request, user: User) -> dict[str, Any]:
    workspace = await hub_of(request).people.get_workspace(user.workspace)
    fields = noun_fields(_SETTINGS, user, asdict(workspace.limits))
    return {"user": user, "workspace": workspace, "fields": fields, "at": at_of(request)}


routes = [
    Route("/users", show_all),
    Route("/keys/users/{user}/invite", invite, methods=["POST"]),
    Route("/keys/users", add, methods=["POST"]),
    Route("/keys/users/{user}", show),
    Route("/keys/users/{user}", change, methods=["POST"]),
    Route("/keys/users/{user}/limits", save, methods=["POST"]),
    Route("/keys/users/{user}/remove", remove, methods=["POST"]),
]
