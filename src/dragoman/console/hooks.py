"""`/hooks`: what looks at calls, in the order in which it does, for whom; and what a rule does to a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.connector_list import can_change
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.session_rights import check_scope, has_scope
from dragoman.console.submitted_form import filled
from dragoman.errors import NotFound

_WORKSPACE, _CONNECTOR, _BUNDLE = "workspace", "connector:", "bundle:"


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Where rules stand: a workspace, a connector or a bundle. `word` names it in forms."""

    word: str
    title: str
    rules: tuple[str, ...]
    may_change: bool = True


async def show(request: Request) -> Response:
    return pages_of(request).page(request, "hooks.html", title="Hooks", **await _facts(request))


async def save(request: Request) -> Response:
    """All rules of one place, in their order: changed, with a new one, without one, or one further up."""
    form = await filled(request)
    rules = [str(one).strip() for one in form.data.getlist("rule")]
    if form.text("remove").isdecimal():
        del rules[int(form.text("remove")) : int(form.text("remove")) + 1]
    if form.text("up").isdecimal() and 0 < (place := int(form.text("up"))) < len(rules):
        rules[place - 1 : place + 1] = rules[place], rules[place - 1]
    await _write(request, form.text("where"), [one for one in (*rules, form.text("new")) if one])
    return await _part(request, "Saved. It holds from the next call on.")


async def add(request: Request) -> Response:
    """One more rule, after those that the place has."""
    form = await filled(request)
    word = form.text("where")
    place = next((one for one in await _places(request) if one.word == word), None)
    if place is None:
        raise NotFound("there is no such place for a hook", hint="load the page again")
    await _write(request, word, [*place.rules, form.text("new")])
    return await _part(request, f"Added for {place.title}. It holds from the next call on.")


async def try_text(request: Request) -> Response:
    form = await filled(request)
    tried = await hub_of(request).hooks.try_rule(form.text("rule"), form.text("text"))
    return pages_of(request).part(request, "hooks/tried.html", tried=tried)


async def _write(request: Request, where: str, rules: Sequence[str]) -> None:
    hub = hub_of(request)
    if where == _WORKSPACE:
        check_scope(request, "admin")
        await hub.people.update_workspace(hub.caller.workspace, hooks=list(rules))
    elif where.startswith(_CONNECTOR):
        await hub.connectors.update(where.removeprefix(_CONNECTOR), hooks=list(rules))
    elif where.startswith(_BUNDLE):
        await hub.bundles.update(where.removeprefix(_BUNDLE), hooks=list(rules))
    else:
        raise NotFound("there is no such place for a hook", hint="load the page again")


async def _part(request: Request, told: str) -> Response:
    return pages_of(request).part(request, "hooks/places.html", told=told, **await _facts(request))


async def _facts(request: Request) -> dict[str, Any]:
    view = await hub_of(request).hooks.list()
    places = await _places(request)
    return {
        "app": view.app,
        "kinds": view.kinds,
        "shown": [one for one in places if one.rules or one.word == _WORKSPACE],
        "open_places": [one for one in places if one.may_change],
    }


async def _places(request: Request) -> list[HookPlace]:
    """In the order in which they are asked."""
    hub = hub_of(request)
    is_admin = hub.caller.is_admin and has_scope(request, "admin")
    may_manage = has_scope(request, "manage")
    found = [
        HookPlace(_WORKSPACE, "the workspace", (await hub.hooks.list()).workspace, is_admin and may_manage)
    ]
    for view in await hub.connectors.list():
        one = view.connector
        if one.kind != "native":
            may_change = may_manage and can_change(one, hub.caller)
            found.append(
                HookPlace(
                    _CONNECTOR + one.slug, f"the connector {one.slug}", one.configuration.hooks, may_change
                )
            )
    for details in await hub.bundles.list():
        bundle = details.bundle
        found.append(
            HookPlace(
                _BUNDLE + bundle.name,
                f"the bundle {bundle.name}",
                bundle.hooks,
                may_manage and details.may_change,
            )
        )
    return found


routes = [
    Route("/hooks", show),
    Route("/hooks", save, methods=["POST"]),
    Route("/hooks/add", add, methods=["POST"]),
    Route("/hooks/try", try_text, methods=["POST"]),
]
