"""`/settings`: what holds here, tier by tier: the installation, the workspace, and what a user chooses."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console import models
from dragoman.console.pages import find_session, hub_of, pages_of
from dragoman.console.session_rights import check_scope
from dragoman.console.setting_forms import noun_changes, noun_fields
from dragoman.console.submitted_form import filled
from dragoman.errors import NotFound
from dragoman.hub.retention import days_kept
from dragoman.people import RETENTION, Preferences, Workspace
from dragoman.setting import people_set

TABS = {
    "mine": "Mine",
    "models": "Models",
    "workspace": "Workspace",
    "retention": "Retention",
    "installation": "Installation",
}
_LIMITS = tuple(one for one in people_set(Preferences) if one.path[0] == "limits")
_WORKSPACE = tuple(one for one in people_set(Workspace) if one.setting.group != RETENTION)
_RETENTION = tuple(one for one in people_set(Workspace) if one.setting.group == RETENTION)
_UNSET = {"keep_chats_days": "until somebody deletes them"}
WORDS = {one.path[-1]: one.label.lower() for one in _LIMITS}
DISCOVERY_WORDS = {
    "off": "No registry is asked at all.",
    "manual": "People may search the registry of MCP servers; agents may not.",
    "automatic": "People and agents may search the registry; a person adds a server, or the app that follows"
    " its namespace.",
}


async def show(request: Request) -> Response:
    tab = request.query_params.get("tab", "mine")
    tabs = _tabs(request)
    if tab not in tabs:
        raise NotFound("there are no such settings", hint=f"there are: {', '.join(tabs)}")
    parts = {
        "mine": _mine,
        "models": models.facts,
        "workspace": _workspace,
        "retention": _retention,
        "installation": _installation,
    }
    facts = await parts[tab](request)
    return pages_of(request).page(
        request, "settings.html", title="Settings", tab=tab, tabs=tabs, part=f"settings/{tab}.html", **facts
    )


async def save_mine(request: Request) -> Response:
    form = await filled(request)
    hub = hub_of(request)
    await hub.preferences.update(
        connectors=None if form.text("which") != "some" else list(form.chosen("connector")),
        auto_load=bool(form.text("auto_load")),
        time_zone=form.text("time_zone") or None,
        **noun_changes(form.texts(), _LIMITS, (await hub.preferences.get()).preferences),
    )
    facts = await _mine(request)
    return pages_of(request).part(
        request, "settings/mine.html", told="Saved. It holds from the next call on.", **facts
    )


async def show_usage(request: Request) -> Response:
    """One's own, or for admins that of any user."""
    user = request.query_params.get("user") or None
    if user is not None:
        check_scope(request, "admin")
    usage = await hub_of(request).usage.show(user)
    return pages_of(request).part(request, "settings/usage.html", usage=usage, words=WORDS)


async def save_workspace(request: Request) -> Response:
    form, hub = await filled(request), hub_of(request)
    before = await hub.people.get_workspace(hub.caller.workspace)
    await hub.people.update_workspace(
        before.id, name=form.text("name") or None, **noun_changes(form.texts(), _WORKSPACE, before)
    )
    return await _workspace_part(request, "Saved. It holds for everybody from the next call on.")


async def save_retention(request: Request) -> Response:
    form, hub = await filled(request), hub_of(request)
    before = await hub.people.get_workspace(hub.caller.workspace)
    await hub.people.update_workspace(before.id, **noun_changes(form.texts(), _RETENTION, before))
    told = "Saved. What is older is deleted within the hour."
    return pages_of(request).part(request, "settings/retention.html", told=told, **await _retention(request))


async def add_workspace(request: Request) -> Response:
    name = (await filled(request)).text("name")
    made = await hub_of(request).people.add_workspace(name)
    return await _workspace_part(request, f"{made.name} is there. Give it users under API keys.")


async def remove_workspace(request: Request) -> Response:
    await hub_of(request).people.remove_workspace(request.path_params["workspace"])
    return await _workspace_part(request, "Removed, with its users and all that was theirs.")


# Parts


def _tabs(request: Request) -> Mapping[str, str]:
    return TABS if _leads(request) else {name: TABS[name] for name in ("mine", "installation")}


def _leads(request: Request) -> bool:
    session = find_session(request)
    return session is not None and hub_of(request).caller.is_admin and "admin" in session.admission.scopes


async def _mine(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    views = await hub.connectors.list()
    view = await hub.preferences.get()
    return {
        "view": view,
        "fields": noun_fields(_LIMITS, view.preferences, asdict(view.above)),
        "usage": await hub.usage.show(),
        "connectors": [view.connector.slug for view in views if view.connector.kind != "native"],
        "users": await hub.people.users() if _leads(request) and hub.settings.multi_user else (),
        "words": WORDS,
        "tier_words": {
            "app": "installation", "workspace": "workspace", "admin": "set for you", "user": "your own",
        },
    }  # fmt: skip


async def _workspace(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    runs_all = hub.caller.role == "operator" and hub.settings.multi_user
    workspace = await hub.people.get_workspace(hub.caller.workspace)
    return {
        "workspace": workspace,
        "fields": noun_fields(_WORKSPACE, workspace),
        "workspaces": await hub.people.workspaces() if runs_all else (),
        "is_operator": hub.caller.role == "operator",
    }


async def _retention(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    workspace = await hub.people.get_workspace(hub.caller.workspace)
    settings = hub.settings
    above = {"keep_calls_days": settings.keep_calls_days, "keep_results_days": settings.keep_results_days}
    return {
        "workspace": workspace,
        "fields": [
            replace(one, placeholder=_UNSET.get(one.name, "as the installation"))
            for one in noun_fields(_RETENTION, workspace, above)
        ],
        "days": days_kept(settings, workspace),
        "is_operator": hub.caller.role == "operator",
        "above": above,
    }


async def _workspace_part(request: Request, told: str) -> Response:
    return pages_of(request).part(request, "settings/workspace.html", told=told, **await _workspace(request))


async def _installation(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    return {
        "is_operator": hub.caller.role == "operator",
        "discovery": DISCOVERY_WORDS[hub.discovery.mode],
        "app_limits": (await hub.preferences.get()).tiers["app"],
        "words": WORDS,
    }


routes = [
    Route("/settings", show),
    Route("/settings/mine", save_mine, methods=["POST"]),
    Route("/settings/usage", show_usage),
    Route("/settings/workspace", save_workspace, methods=["POST"]),
    Route("/settings/retention", save_retention, methods=["POST"]),
    Route("/settings/workspaces", add_workspace, methods=["POST"]),
    Route("/settings/workspaces/{workspace}/remove", remove_workspace, methods=["POST"]),
]
