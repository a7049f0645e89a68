"""`/api/tools`: what can be called, and calling it. `POST /api/call` itself is in `app.py`."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.calls import EVENTS, read_call, wants_events
from dragoman.api.events import event_stream
from dragoman.api.requests import PROBLEMS, TheHub, ToolCallRequest, request_body
from dragoman.api.shapes import OutputShape, ToolDetailShape, ToolsShape, tool_detail, tool_view
from dragoman.api.threads import ThreadHub
from dragoman.connector import Policy
from dragoman.hub import BoundHub
from dragoman.web.encoding import JSON, json_response

routes = APIRouter(prefix="/api", tags=["tools"], responses=PROBLEMS)
_ONE: dict[int | str, dict[str, Any]] = {200: {"model": ToolDetailShape}}
_OUTPUT: dict[int | str, dict[str, Any]] = {200: {"model": OutputShape, "content": {EVENTS: {}}}}


class ToolSettings(BaseModel):
    """What is left out stays as it is; `approval: null` leaves it to the connector and the workspace."""

    model_config = ConfigDict(extra="forbid")

    allowed_callers: list[str] = Field(default=[], description="out of direct, agent, mcp and code")
    approval: Policy | None = None
    required_capabilities: list[str] = Field(default=[], description="besides those that admit any tool")
    cost: float = Field(default=0, description="dollars a call")
    cache_ttl: float = Field(default=0, description="seconds; only for tools that only read")


@routes.get("/tools", responses={200: {"model": ToolsShape}})
async def list_tools(hub: ThreadHub, connector: str | None = None) -> Response:
    """From memory, whatever the servers do."""
    tools = [tool_view(hub.tools.info(tool.name)) for tool in hub.tools.list(connector)]
    return json_response({"tools": tools})


# A tool's own name may hold a slash, and with it the alias `<slug>__<tool>`: hence `path`.
@routes.post(
    "/tools/{name:path}/call", responses=_OUTPUT, openapi_extra={"requestBody": request_body(ToolCallRequest)}
)
async def call_named_tool(name: str, request: Request, hub: TheHub) -> Response:
    """Always 200 for a request that can be understood: a call that failed has `ok: false`.

    With `Accept: text/event-stream` the answer is events: `call.progress`, `question.asked` (a QuestionShape,
    answered at `/api/questions/{id}`), and last `call.finished` with the output. Who leaves cancels the call.
    """
    called = read_call(hub, await request.body() or b"{}", name)
    if wants_events(request.headers.get("accept", "")):
        return event_stream(request, *called.stream())
    return Response(await called.make(), media_type=JSON)


@routes.post("/tools/{name:path}/enable", responses=_ONE)
async def enable_tool(name: str, hub: TheHub) -> Response:
    await hub.tools.enable(name)
    return await _detail(hub, name)


@routes.post("/tools/{name:path}/disable", responses=_ONE)
async def disable_tool(name: str, hub: TheHub) -> Response:
    await hub.tools.disable(name)
    return await _detail(hub, name)


@routes.post("/tools/{name:path}/accept", responses=_ONE)
async def accept_tool(name: str, hub: TheHub) -> Response:
    """A person has read what changed in a pinned tool and wants it called as it is now."""
    await hub.tools.accept(name)
    return await _detail(hub, name)


@routes.patch("/tools/{name:path}", responses=_ONE)
async def set_tool(name: str, settings: ToolSettings, hub: TheHub) -> Response:
    """They hold for everybody who uses the tool, whatever its server lists from now on."""
    await hub.tools.configure(name, **settings.model_dump(exclude_unset=True))
    return await _detail(hub, name)


@routes.get("/tools/{name:path}", responses=_ONE)
async def get_tool(name: str, hub: TheHub) -> Response:
    return await _detail(hub, name)


async def _detail(hub: BoundHub, name: str) -> Response:
    return json_response(tool_detail(await hub.tools.listed(name), await hub.tools.versions(name)))
