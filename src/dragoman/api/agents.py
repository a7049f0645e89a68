"""`/api/agents`: who works here. Also the names by which some callers know assigning and removing."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.agent import AgentKind, AgentProfile, AgentStatus
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.setting_models import request_of, shape_of
from dragoman.hub import BoundHub
from dragoman.hub.agents import AgentView
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api/agents", tags=["agents"], responses=PROBLEMS)
aliases = APIRouter(prefix="/agents", tags=["agents"], responses=PROBLEMS)

Word = Annotated[str, Field(max_length=200)]


class AgentNumbersShape(Shape):
    """What it did for this workspace. `latency_ms` is the mean of its runs; `unpriced` are requests to models
    whose price nobody knows, which `cost` does not contain.
    """

    runs: int
    errors: int
    calls: int
    latency_ms: float
    input_tokens: int
    output_tokens: int
    cost: float
    unpriced: int
    last_used: datetime | None


class AgentShape(shape_of(AgentProfile, name=str, kind=AgentKind, status=AgentStatus, shared=bool)):
    """`connectors` null: all that are active where it works. `shared`: everybody of the workspace has it."""

    numbers: AgentNumbersShape
    notes: list[str]
    created_at: datetime
    updated_at: datetime


class AgentsShape(Shape):
    agents: list[AgentShape]


class AssignedShape(Shape):
    message: str
    agent: AgentShape


class NewAgent(request_of(AgentProfile)):
    """What is left out or null is at its default."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "mailer",
                    "instructions": "Reads and writes e-mail. Never sends without being asked.",
                    "connectors": ["email"],
                }
            ]
        },
    )

    name: str = Field(max_length=200, description="as it is mentioned: @name")
    shared: bool = Field(default=False, description="for the whole workspace: only its admins may")


class AgentChanges(request_of(AgentProfile)):
    """What is left out stays as it is, null sets back to the default. The assistant and connectors' agents
    have instructions, model, fallbacks and exposure to change; a worker all of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "openai:gpt-5"}]})


_SERVER = AliasChoices(
    "server_name",
    "serverName",
    "action_server_name",
    "actionServerName",
    "action_server",
    "actionServer",
    "action_server_id",
    "actionServerId",
    "server",
    "server_id",
    "serverId",
    "connector",
    "connector_id",
    "connectorId",
)


class Unassignment(BaseModel):
    """Many spellings are understood: agent_name, agentName, agent; server_name, action_server, connector …"""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"examples": [{"agent_name": "mailer", "server_name": "email_mcp"}]},
    )

    agent_name: Word = Field(
        validation_alias=AliasChoices("agent_name", "agentName", "agent", "agent_id", "agentId", "name"),
    )
    server_name: Word | None = Field(
        default=None, validation_alias=_SERVER, description="all that it has, if left out"
    )


class Assignment(Unassignment):
    server_name: Word = Field(validation_alias=_SERVER)  # pyright: ignore[reportIncompatibleVariableOverride]


_ONE: dict[int | str, dict[str, Any]] = {200: {"model": AgentShape}}
_ASSIGNED: dict[int | str, dict[str, Any]] = {200: {"model": AssignedShape}}


@routes.get("", responses={200: {"model": AgentsShape}})
async def list_agents(hub: TheHub) -> Response:
    """The assistant, then workers, then the agents of connectors."""
    return json_response({"agents": [agent_view(view) for view in await hub.agents.views()]})


@routes.post("", status_code=201, responses={201: {"model": AgentShape}})
async def create_agent(new: NewAgent, hub: TheHub) -> Response:
    """A worker, at work at once."""
    settings: Any = new.settings()
    agent = await hub.agents.create(new.name, shared=new.shared, **settings)
    view = await hub.agents.view(agent.name)
    return json_response(agent_view(view), 201, {"Location": f"/api/agents/{quote(agent.name)}"})


@routes.get("/{name}", responses=_ONE)
async def get_agent(name: str, hub: TheHub) -> Response:
    return await _shown(name, hub)


@routes.patch("/{name}", responses=_ONE)
async def update_agent(name: str, changes: AgentChanges, hub: TheHub) -> Response:
    """Effective from its next step, in the middle of a conversation too."""
    settings: Any = changes.settings()
    await hub.agents.update(name, **settings)
    return await _shown(name, hub)


@routes.delete("/{name}", status_code=204)
async def remove_agent(name: str, hub: TheHub) -> Response:
    """A worker with its numbers. What it said stays where it was said."""
    await hub.agents.remove(name)
    return Response(status_code=204)


@routes.post("/{name}/start", responses=_ONE)
async def start_agent(name: str, hub: TheHub) -> Response:
    await hub.agents.start(name)
    return await _shown(name, hub)


@routes.post("/{name}/stop", responses=_ONE)
async def stop_agent(name: str, hub: TheHub) -> Response:
    """It keeps all it has and takes no new message; what it works on now it finishes."""
    await hub.agents.stop(name)
    return await _shown(name, hub)


@routes.put("/{name}/connectors/{slug}", responses=_ONE)
async def assign_connector(name: str, slug: str, hub: TheHub) -> Response:
    """Gives a worker a connector; one that it has already changes nothing."""
    await hub.agents.assign(name, slug)
    return await _shown(name, hub)


@routes.delete("/{name}/connectors/{slug}", responses=_ONE)
async def unassign_connector(name: str, slug: str, hub: TheHub) -> Response:
    await hub.agents.unassign(name, slug)
    return await _shown(name, hub)


@aliases.post("/assign-action-server", responses=_ASSIGNED)
async def assign_action_server(wanted: Assignment, hub: TheHub) -> Response:
    """The same as `PUT /api/agents/{name}/connectors/{slug}`."""
    await hub.agents.assign(wanted.agent_name, wanted.server_name)
    return await _assigned(wanted.agent_name, f"{wanted.server_name} is assigned to", hub)


@aliases.post("/remove-action-server", responses=_ASSIGNED)
async def remove_action_server(wanted: Unassignment, hub: TheHub) -> Response:
    """The same as `DELETE /api/agents/{name}/connectors/{slug}`; without a server, of all that it has."""
    held = (await hub.agents.get(wanted.agent_name)).connectors
    if wanted.server_name is None and held is None:
        await hub.agents.update(wanted.agent_name, connectors=())
        return await _assigned(wanted.agent_name, "everything is removed from", hub)
    taken = [wanted.server_name] if wanted.server_name else [*(held or ())]
    await hub.agents.unassign(wanted.agent_name, *taken)
    return await _assigned(wanted.agent_name, f"{', '.join(taken) or 'nothing'} is removed from", hub)


async def _assigned(agent: str, what: str, hub: BoundHub) -> Response:
    view = await hub.agents.view(agent)
    message = f"{what} {view.agent.name}"
    return json_response({"message": message, "agent": agent_view(view)})


async def _shown(name: str, hub: BoundHub) -> Response:
    return json_response(agent_view(await hub.agents.view(name)))


def agent_view(view: AgentView) -> AgentShape:
    numbers = AgentNumbersShape.of(view.numbers, latency_ms=round(view.numbers.latency_ms, 1))
    return AgentShape.of(view.agent, shared=not view.agent.owner, numbers=numbers, notes=view.notes)
