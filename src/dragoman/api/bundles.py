"""`/api/bundles`: choices of tools, and how each shows them."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.bundle import EVERY_TOOL, BundleView, ToolOverride
from dragoman.catalog.bundles import ShownEntry
from dragoman.hook_rule import HookRules
from dragoman.hub.bundles import BundleDetails, Tier
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["bundles"], responses=PROBLEMS)
_MOST = 2_000


class BundledToolShape(Shape):
    """`tool` is what its server calls it, `name` what the bundle does. What does not `work` is not shown,
    for its `problems`. `override` is told to whoever may change the bundle.
    """

    connector: str
    tool: str
    name: str | None
    works: bool
    problems: list[str]
    override: dict[str, Any] | None


class BundleShape(Shape):
    """`mcp` is where clients reach it, `openapi` its description for those that know no MCP. `hooks` are told
    to whoever may change the bundle.
    """

    name: str
    title: str
    description: str
    instructions: str
    tier: Tier
    view: BundleView | None
    capabilities: list[str] | None
    tools: list[BundledToolShape]
    resources: list[str]
    hooks: list[str] | None
    problems: list[str]
    may_change: bool
    mcp: str
    openapi: str
    created_at: datetime
    updated_at: datetime


class BundlesShape(Shape):
    bundles: list[BundleShape]


class GivenTool(ToolOverride):
    """A tool by its name, or by `connector` and its server's own name; and how the bundle shows it."""

    connector: str | None = Field(default=None, max_length=200, description="where `tool` is its own name")
    tool: str = Field(default=EVERY_TOOL, min_length=1, max_length=1_000, description="* is every one")


_Tools = Annotated[
    list[str | GivenTool], Field(max_length=_MOST, description="names of tools or connectors, or overrides")
]


class BundleSettings(BaseModel):
    """What is left out stays as it is; `tools`, `resources` and `hooks` take the place of all there were."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(default=None, max_length=200)
    description: str | None = Field(default=None, max_length=2_000)
    instructions: str | None = Field(default=None, max_length=20_000, description="told to clients")
    view: BundleView | None = Field(default=None, description="null: by what is deferred")
    capabilities: list[str] | None = Field(
        default=None, max_length=_MOST, description="of its tools only what these admit, as for a key"
    )
    tools: _Tools = []
    resources: list[str] = Field(
        default=[], max_length=_MOST, description="connectors whose prompts and resources are in it too"
    )
    hooks: HookRules = Field(default=(), description="what looks at all that passes by it, after all others")


class NewBundle(BundleSettings):
    name: str = Field(min_length=1, max_length=200)
    tier: Tier = Field(default="user", description="whose it is; workspace is for admins")


class AddedTools(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tools: list[str] = Field(min_length=1, max_length=_MOST, description="names of tools or connectors")


_ONE: dict[int | str, dict[str, Any]] = {200: {"model": BundleShape}}
_Tool = Annotated[str, Path(description="its name in the bundle or of its own, or a connector's")]


@routes.get("/bundles", responses={200: {"model": BundlesShape}})
async def list_bundles(hub: TheHub) -> Response:
    """Your own, the workspace's and the app's, as far as you may use them."""
    return json_response({"bundles": [_view(one) for one in await hub.bundles.list()]})


@routes.post("/bundles", status_code=201, responses={201: {"model": BundleShape}})
async def create_bundle(hub: TheHub, bundle: NewBundle) -> Response:
    """A choice of tools under a name. What would be broken at once is refused, and nothing is written."""
    return json_response(_view(await hub.bundles.create(bundle.name, **_given(bundle, "tier"))), 201)


@routes.get("/bundles/{name}", responses=_ONE)
async def show_bundle(hub: TheHub, name: str) -> Response:
    """With what is broken of it: a tool that vanished keeps its override until it is back."""
    return json_response(_view(await hub.bundles.get(name)))


@routes.patch("/bundles/{name}", responses=_ONE)
async def update_bundle(hub: TheHub, name: str, settings: BundleSettings) -> Response:
    """Changes what is given and keeps the rest."""
    return json_response(_view(await hub.bundles.update(name, **_given(settings))))


@routes.delete("/bundles/{name}", status_code=204)
async def remove_bundle(hub: TheHub, name: str) -> Response:
    """For good. Who was given it alone sees no tool from then on."""
    await hub.bundles.remove(name)
    return Response(status_code=204)


@routes.post("/bundles/{name}/tools", responses=_ONE)
async def add_to_bundle(hub: TheHub, name: str, added: AddedTools) -> Response:
    """These tools too; what is in it already keeps its override."""
    return json_response(_view(await hub.bundles.add(name, *added.tools)))


@routes.put("/bundles/{name}/tools/{tool:path}", responses=_ONE)
async def override_tool(hub: TheHub, name: str, tool: _Tool, override: ToolOverride) -> Response:
    """How the bundle shows one of its tools, in the place of what was overridden of it before."""
    return json_response(_view(await hub.bundles.override(name, tool, **override.written())))


@routes.delete("/bundles/{name}/tools/{tool:path}", responses=_ONE)
async def drop_from_bundle(hub: TheHub, name: str, tool: _Tool) -> Response:
    """Takes a tool, or a connector with all of its tools, out of the bundle, with its override."""
    return json_response(_view(await hub.bundles.drop(name, tool)))


def _given(settings: BundleSettings, *more: str) -> dict[str, Any]:
    given = settings.model_dump(exclude_unset=True, include={*BundleSettings.model_fields, *more})
    if "tools" in given:
        given["tools"] = [one if isinstance(one, str) else one.written() for one in settings.tools]
    return given


def _view(details: BundleDetails) -> BundleShape:
    bundle = details.bundle
    return BundleShape.of(
        bundle,
        tier=details.tier,
        capabilities=None if bundle.capabilities is None else sorted(bundle.capabilities),
        tools=[_tool(one, details) for one in details.entries],
        resources=[details.connectors.get(one, one) for one in bundle.resources],
        hooks=[*bundle.hooks] if details.may_change else None,
        problems=[*details.problems],
        may_change=details.may_change,
        mcp=f"/mcp/bundles/{bundle.name}",
        openapi=f"/openapi/{bundle.name}.json",
    )


def _tool(one: ShownEntry, details: BundleDetails) -> BundledToolShape:
    entry, base = one.entry, one.base
    override = {key: value for key, value in entry.written().items() if key in ToolOverride.model_fields}
    return BundledToolShape(
        connector=details.connectors.get(entry.connector) or entry.slug or entry.connector,
        tool=base.original_name if base is not None else entry.tool,
        name=one.name or None,
        works=one.tool is not None,
        problems=[*one.problems],
        override=override if override and details.may_change else None,
    )
