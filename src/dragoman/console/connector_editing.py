"""Adding and changing a connector by a form: a test that leaves nothing behind, then the saving of it."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.connector_forms import WAYS, facts_of, groups_of, typed_of, way_of
from dragoman.console.formatting import said
from dragoman.console.pages import hub_of, pages_of
from dragoman.errors import DragomanError, InvalidConfig, NotFound
from dragoman.formats.import_files import ImportText
from dragoman.hub import BoundHub
from dragoman.hub.imports import ImportStep

_ANSWER = "answer:"
_GIVEN = "give:"
# With anything else in it, what was pasted is only looked at: agents and bundles would be written.
_BEFORE = 5  # seconds that clocks and requests may differ
_MOST_STARTING = 5
_SECONDS = re.compile(r"\d{1,4}", re.ASCII)
_TRIED = ("add", "replace", "unchanged", "conflict")


async def show_new(request: Request) -> Response:
    by = request.query_params.get("by", "command")
    return pages_of(request).page(
        request,
        "connectors/new.html",
        title="Add a connector",
        by=by if by in WAYS else "command",
        connector=None,
        groups=groups_of(None),
        ways=WAYS,
        is_new=True,
        common=hub_of(request).discovery.common(),
        shows_common="by" not in request.query_params,
    )


async def test_new(request: Request) -> Response:
    """Adds it, looks at what it offers, and removes it again; of pasted JSON, each that would be added."""
    hub, typed = hub_of(request), await _typed(request)
    if typed.get("by") == "paste":
        return await _steps(request, typed, is_done=False)
    try:
        view = await hub.connectors.add(_name(typed), **_new_facts(typed))
    except DragomanError as error:
        return said(request, error)
    slug = view.connector.slug
    try:
        tools = [hub.tools.info(tool.name) for tool in hub.tools.list(slug)]
        return pages_of(request).part(request, "connectors/tested.html", view=view, tools=tools)
    finally:
        await hub.connectors.remove(slug)


async def show_starting(request: Request) -> Response:
    """How far those are that were added a moment ago and do not answer yet: what their programs say."""
    asked = request.query_params.get("seconds", "")
    since = datetime.now(UTC) - timedelta(seconds=_BEFORE + (int(asked) if _SECONDS.fullmatch(asked) else 0))
    views = [
        view
        for view in await hub_of(request).connectors.list()
        if view.connector.created_at >= since and view.status.state not in ("connected", "disabled")
    ]
    return pages_of(request).part(request, "connectors/starting.html", views=views[:_MOST_STARTING])


async def save_new(request: Request) -> Response:
    """A server that does not answer now is kept and tried again: its page says why."""
    hub, typed = hub_of(request), await _typed(request)
    if typed.get("by") == "paste":
        return await _steps(request, typed, is_done=True)
    try:
        view = await hub.connectors.add(_name(typed), **_new_facts(typed))
    except DragomanError as error:
        return said(request, error)
    return Response(status_code=204, headers={"hx-redirect": f"/connectors/{view.connector.slug}"})


async def show_edit(request: Request) -> Response:
    view = await hub_of(request).connectors.get(request.path_params["slug"])
    connector = view.connector
    if connector.kind == "native":
        raise InvalidConfig("these tools come with the program", hint="there is nothing to change")
    return pages_of(request).page(
        request,
        "connectors/new.html",
        title=f"Change {connector.slug}",
        by=way_of(connector.configuration),
        groups=groups_of(connector),
        connector=connector,
        is_new=False,
    )


async def save_edit(request: Request) -> Response:
    """Only what differs is told, so that nothing is set that nobody chose; what was cleared is set back."""
    hub, slug = hub_of(request), request.path_params["slug"]
    typed = await _typed(request)
    before = (await hub.connectors.get(slug)).connector.configuration
    try:
        description = typed.get("description", "").strip()
        await hub.connectors.update(slug, description=description, **facts_of(typed, before))
    except DragomanError as error:
        return said(request, error)
    return Response(status_code=204, headers={"hx-redirect": f"/connectors/{slug}?tab=settings"})


async def _steps(request: Request, typed: Mapping[str, str], *, is_done: bool) -> Response:
    hub = hub_of(request)
    text = typed.get("paste", "")
    if not text.strip():
        return said(request, InvalidConfig("nothing was pasted", hint='for example: {"mcpServers": {…}}'))
    answers = {
        name.removeprefix(_ANSWER): value
        for name, value in typed.items()
        if name.startswith(_ANSWER) and value
    }
    sources = [ImportText(text=text, name="what was pasted")]
    if is_done:
        steps = await hub.imports.apply(sources, inputs=answers, replace="replace" in typed)
    else:
        steps = await hub.imports.plan(sources, inputs=answers, replace="replace" in typed)
        if all(step.kind == "connector" and step.action in _TRIED for step in steps):
            steps = await _tried(hub, sources, answers, steps)
    return pages_of(request).part(
        request, "connectors/steps.html", steps=steps, is_done=is_done, answers=answers
    )


async def _tried(
    hub: BoundHub, sources: Sequence[ImportText], answers: Mapping[str, str], planned: Sequence[ImportStep]
) -> Sequence[ImportStep]:
    """What would be added really starts, once, and is gone again; what exists stays as it is."""
    new = made = [step.slug for step in planned if step.action == "add"]
    try:
        steps = await hub.imports.apply(sources, inputs=answers)
        made = [step.slug for step in steps if step.action == "add"]  # no other's that came meanwhile
        tried = {step.slug: step.view for step in steps}
        return [replace(step, view=tried.get(step.slug) if step.slug in new else None) for step in planned]
    finally:
        for slug in made:
            with suppress(NotFound):
                await hub.connectors.remove(slug)


async def _typed(request: Request) -> dict[str, str]:
    return typed_of((await request.form()).items())


def _name(typed: Mapping[str, str]) -> str:
    name = typed.get("name", "").strip()
    if not name:
        raise InvalidConfig("the name is empty", hint="a short word such as github; tools are named after it")
    return name


def _new_facts(typed: Mapping[str, str]) -> dict[str, Any]:
    """With what a test found its program to lack in its box, as far as it was ticked."""
    beside = {"description": typed.get("description", "").strip(), "shared": "shared" in typed}
    facts = facts_of(typed)
    for name in typed:
        if name.startswith(_GIVEN):
            setting, _, value = name.removeprefix(_GIVEN).partition(":")
            if setting in ("mounts", "network"):
                facts[setting] = [*facts.get(setting, ()), value]
    return {**facts, **beside}


routes = [
    Route("/connectors/new/starting", show_starting),
    Route("/connectors/new", show_new),
    Route("/connectors/new", save_new, methods=["POST"]),
    Route("/connectors/new/test", test_new, methods=["POST"]),
    Route("/connectors/{slug}/edit", show_edit),
    Route("/connectors/{slug}/edit", save_edit, methods=["POST"]),
]
