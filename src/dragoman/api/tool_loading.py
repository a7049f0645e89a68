"""`/api/tools/resolve`, `load`, `unload` and `footprint`: which tools a model has in view, and their cost.

Its routes stand before those that take a tool's name.
"""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.shapes import SearchHitShape, tool_hit
from dragoman.hub.deferred_tools import Footprint, ToolFootprint
from dragoman.tokens import Counter
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["tools"], responses=PROBLEMS)
_Thread = Annotated[str, Field(min_length=1, max_length=200)]
_Names = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=1000)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ResolveRequest(_Request):
    prompt: str = Field(description="what is to be done")
    thread: _Thread | None = Field(default=None, description="where to load them; nowhere if left out")
    max_tools: int = 5
    cost_limit: float | None = Field(default=None, description="most dollars that a call may cost")
    history: list[str] = Field(default=[], max_length=1000, description="what was said before, oldest first")


class LoadRequest(_Request):
    thread: _Thread
    tools: _Names = Field(min_length=1)


class UnloadRequest(_Request):
    thread: _Thread
    tools: _Names | None = Field(default=None, description="all that are loaded if left out")


class ResolvedShape(Shape):
    """`total` is how many tools were searched, `summary` says both: 5 of 1,938. `tokens` are of the hits.

    `loaded` are those that the thread did not have before; none where `auto_load` is off.
    """

    total: int
    summary: str
    thread: str | None
    auto_load: bool
    tokens: int
    loaded: list[str]
    hits: list[SearchHitShape]


class LoadedShape(Shape):
    """`changed` are those that this request loaded or unloaded, `loaded` all that the thread has now."""

    thread: str
    changed: list[str]
    loaded: list[str]


class ToolFootprintShape(Shape):
    name: str
    connector: str
    tokens: int
    deferred: bool
    loaded: bool


class ConnectorFootprintShape(Shape):
    connector: str
    tools: int
    tokens: int
    tools_in_view: int
    tokens_in_view: int


class FootprintShape(Shape):
    """In view is what is not deferred. `counted_by` estimate: a few percent off."""

    thread: str | None
    budget: int
    counted_by: Counter
    tokens: int
    tokens_in_view: int
    connectors: list[ConnectorFootprintShape]
    tools: list[ToolFootprintShape]


@routes.post("/tools/resolve", responses={200: {"model": ResolvedShape}})
async def resolve_tools(wanted: ResolveRequest, hub: TheHub) -> Response:
    """Finds the tools for a prompt and loads them into the thread, if the user's `auto_load` is on."""
    found = await hub.tools.resolve(**wanted.model_dump())
    hits = [tool_hit(info, score) for info, score in found.hits]
    return json_response(ResolvedShape.of(found, hits=hits))


@routes.post("/tools/load", responses={200: {"model": LoadedShape}})
async def load_tools(wanted: LoadRequest, hub: TheHub) -> Response:
    """All of them, or none where one cannot be loaded."""
    new = await hub.tools.load(wanted.tools, wanted.thread)
    loaded = hub.tools.loaded(wanted.thread)
    return json_response({"thread": wanted.thread, "changed": list(new), "loaded": list(loaded)})


@routes.post("/tools/unload", responses={200: {"model": LoadedShape}})
async def unload_tools(wanted: UnloadRequest, hub: TheHub) -> Response:
    gone = await hub.tools.unload(wanted.tools, wanted.thread)
    loaded = hub.tools.loaded(wanted.thread)
    return json_response({"thread": wanted.thread, "changed": list(gone), "loaded": list(loaded)})


@routes.get("/tools/footprint", responses={200: {"model": FootprintShape}})
async def tool_footprint(
    hub: TheHub,
    thread: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
) -> Response:
    """What each tool and connector costs in tokens, and what of it is in view."""
    return json_response(footprint_view(await hub.tools.footprint(thread)))


def footprint_view(footprint: Footprint) -> FootprintShape:
    by_connector: dict[str, list[ToolFootprint]] = {}
    for tool in footprint.tools:
        by_connector.setdefault(tool.connector, []).append(tool)
    connectors = [_connector_view(slug, tools) for slug, tools in by_connector.items()]
    return FootprintShape.of(footprint, connectors=connectors)


def _connector_view(slug: str, tools: Sequence[ToolFootprint]) -> ConnectorFootprintShape:
    in_view = [tool for tool in tools if not tool.deferred]
    return ConnectorFootprintShape(
        connector=slug,
        tools=len(tools),
        tokens=sum(tool.tokens for tool in tools),
        tools_in_view=len(in_view),
        tokens_in_view=sum(tool.tokens for tool in in_view),
    )
