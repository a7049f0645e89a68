"""`/keys/users`: who may come in, with what, and how much. For admins of a workspace."""

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.keys import at_of, listed, place_of
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.session_rights import check_scope
from dragoman.console.setting_forms import noun_changes, noun_fields
from dragoman.console.submitted_form import filled
from dragoman.people import User
from dragoman.setting import people_set

_SETTINGS = people_set(User)


async def show(request: Request) -> Response:
    check_scope(request, "admin")
    user = await _user(request)
    return pages_of(request).page(request, "keys/user.html", title=user.name, **await _facts(request, user))


async def add(request: Request) -> Response:
    form = await filled(request)
    user = await hub_of(request).people.add_user(
        form.text("name"),
        workspace=place_of(request),
        **noun_changes(form.texts(), _SETTINGS, None),
    )
    return await listed(request, told=f"{user.name} is a user now. Make them a key to sign in with.")


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
    Route("/keys/users", add, methods=["POST"]),
    Route("/keys/users/{user}", show),
    Route("/keys/users/{user}", change, methods=["POST"]),
    Route("/keys/users/{user}/limits", save, methods=["POST"]),
    Route("/keys/users/{user}/remove", remove, methods=["POST"]),
]
