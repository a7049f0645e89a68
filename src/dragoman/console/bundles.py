"""`/bundles`: choices of tools, and how each shows them. Fixed values are for who may change the bundle."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.bundle import ParameterOverride
from dragoman.catalog.bundles import ShownEntry
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.submitted_form import SubmittedForm, filled
from dragoman.web.protected_resources import base_of

_FIELDS = ("title", "description", "instructions")
_ANNOTATIONS = ("read_only", "destructive", "idempotent", "open_world")


@dataclass(frozen=True, slots=True)
class ParameterField:
    """One parameter of a tool in its form. `use` is shown, fixed, default or hidden."""

    name: str
    use: str
    value: str
    new_name: str
    description: str
    own_description: str
    is_required: bool


async def show_all(request: Request) -> Response:
    return pages_of(request).page(request, "bundles.html", title="Bundles", **await _all(request))


async def create(request: Request) -> Response:
    form, hub = await filled(request), hub_of(request)
    tier: Any = form.text("tier") or "user"
    made = await hub.bundles.create(form.text("name"), form.words("tools"), tier=tier)
    told = f"{made.bundle.name} is made. Open it to change how its tools are shown."
    return pages_of(request).part(request, "bundles/list.html", told=told, **await _all(request))


async def show_one(request: Request) -> Response:
    facts = await _one(request)
    return pages_of(request).page(request, "bundle.html", title=facts["details"].bundle.name, **facts)


async def update(request: Request) -> Response:
    form = await filled(request)
    settings: dict[str, Any] = {name: form.text(name) for name in _FIELDS}
    settings |= {"view": form.text("view") or None, "resources": form.words("resources")}
    settings["hooks"] = [line.strip() for line in form.text("hooks").splitlines() if line.strip()]
    settings["capabilities"] = form.words("capabilities") or None
    await hub_of(request).bundles.update(request.path_params["name"], **settings)
    return await _part(request, "The settings are saved.")


async def add(request: Request) -> Response:
    tools = (await filled(request)).words("tools")
    await hub_of(request).bundles.add(request.path_params["name"], *tools)
    return await _part(request, "Added.")


async def override(request: Request) -> Response:
    form = await filled(request)
    name, tool = request.path_params["name"], form.text("tool")
    details = await hub_of(request).bundles.get(name)
    shown = next((one for one in details.entries if details.label(one) == tool), None)
    await hub_of(request).bundles.override(name, tool, **_override(form, shown))
    return await _part(request, "Saved. Clients have it so from now on.")


async def drop(request: Request) -> Response:
    tool = (await filled(request)).text("tool")
    await hub_of(request).bundles.drop(request.path_params["name"], tool)
    return await _part(request, f"{tool} is out of the bundle.")


async def remove(request: Request) -> Response:
    await hub_of(request).bundles.remove(request.path_params["name"])
    return Response(status_code=204, headers={"hx-redirect": "/bundles"})


async def _part(request: Request, told: str) -> Response:
    return pages_of(request).part(request, "bundles/bundle.html", told=told, **await _one(request))


async def _all(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    return {"bundles": await hub.bundles.list(), "base": base_of(hub.settings, request.scope)}


async def _one(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    details = await hub.bundles.get(request.path_params["name"])
    return {
        "details": details,
        "base": base_of(hub.settings, request.scope),
        "parameters_of": _parameters,
        "annotations": _ANNOTATIONS,
    }


def _parameters(one: ShownEntry) -> list[ParameterField]:
    """Those of the tool itself, and those that an override names and the tool has no more."""
    schema: Mapping[str, Any] = one.base.definition.input_schema if one.base is not None else {}
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    required = cast("list[str]", schema.get("required") or [])
    overrides = one.entry.parameters
    fields: list[ParameterField] = []
    for name in dict.fromkeys((*properties, *overrides)):
        override = overrides.get(name) or ParameterOverride()
        own = properties.get(name)
        said = cast("Mapping[str, Any]", own).get("description") if isinstance(own, Mapping) else None
        fields.append(
            ParameterField(
                name=name,
                use=_use_of(override),
                value=_written(override),
                new_name=override.name or "",
                description=override.description or "",
                own_description=str(said or ""),
                is_required=name in required,
            )
        )
    return fields


def _use_of(override: ParameterOverride) -> str:
    if override.has_value:
        return "fixed"
    return "hidden" if override.hidden else "default" if override.has_default else "shown"


def _written(override: ParameterOverride) -> str:
    if not (override.has_value or override.has_default):
        return ""
    value = override.value if override.has_value else override.default
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _override(form: SubmittedForm, one: ShownEntry | None) -> dict[str, Any]:
    """What the form says; what is empty is as the server has it."""
    said: dict[str, Any] = {name: form.text(name) for name in ("name", "title", "description")}
    said = {name: value for name, value in said.items() if value}
    if form.text("enabled") != "yes":
        said["enabled"] = False
    marks = {name: form.text(f"is:{name}") for name in _ANNOTATIONS}
    if chosen := {name: value == "yes" for name, value in marks.items() if value}:
        said["annotations"] = chosen
    schema: Mapping[str, Any] = one.base.definition.input_schema if one and one.base else {}
    parameters: dict[str, Any] = {}
    for name in form.chosen("parameter"):
        if override := _parameter(form, name, schema):
            parameters[name] = override
    return {**said, "parameters": parameters} if parameters else said


def _parameter(form: SubmittedForm, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    use = form.text(f"use:{name}")
    if use == "hidden":
        return {"hidden": True}
    if use == "fixed":
        return {"value": _read(form.text(f"value:{name}"), name, schema)}
    said = {"name": form.text(f"name:{name}"), "description": form.text(f"description:{name}")}
    override: dict[str, Any] = {key: value for key, value in said.items() if value}
    if use == "default":
        override["default"] = _read(form.text(f"value:{name}"), name, schema)
    return override


def _read(text: str, name: str, schema: Mapping[str, Any]) -> Any:
    """A text where the tool wants one, else JSON; what is none stays a text, and is refused with a reason."""
    wanted: Any = cast("Mapping[str, Any]", schema.get("properties") or {}).get(name)
    if isinstance(wanted, Mapping) and cast("Mapping[str, Any]", wanted).get("type") == "string":
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


routes = [
    Route("/bundles", show_all),
    Route("/bundles", create, methods=["POST"]),
    Route("/bundles/{name}", show_one),
    Route("/bundles/{name}", update, methods=["POST"]),
    Route("/bundles/{name}/tools", add, methods=["POST"]),
    Route("/bundles/{name}/override", override, methods=["POST"]),
    Route("/bundles/{name}/drop", drop, methods=["POST"]),
    Route("/bundles/{name}/remove", remove, methods=["POST"]),
]
