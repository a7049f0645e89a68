"""What the assistant may have the hub do. Fills `Management`; rights are checked by the facades it calls."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.access.approvals import QUESTION_LASTS
from dragoman.agent import Agent
from dragoman.agents.offers import OfferCall
from dragoman.connector import Configuration, Connector
from dragoman.hub.agents import Agents
from dragoman.hub.approvals import OWN
from dragoman.hub.connectors import Connectors, ConnectorView
from dragoman.hub.tools import Tools
from dragoman.scope import APP, Caller
from dragoman.tool import Annotations, Tool, ToolCall, ToolDefinition

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

_MOST_TOOLS = 200
_ITSELF = Connector(
    id=OWN,
    workspace=APP,
    owner="",
    slug=OWN,
    description="Dragoman itself",
    configuration=Configuration(kind="native", isolation="shared"),
)


class HubManagement:
    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime

    async def list_agents(self, caller: Caller) -> Any:
        return [_agent(agent) for agent in await Agents(self._runtime, caller).list()]

    async def create_agent(self, facts: Mapping[str, Any], caller: Caller) -> Any:
        wanted = dict(facts)
        return _agent(await Agents(self._runtime, caller).create(wanted.pop("name"), **wanted))

    async def start_agent(self, name: str, caller: Caller) -> Any:
        return _agent(await Agents(self._runtime, caller).start(name))

    async def stop_agent(self, name: str, caller: Caller) -> Any:
        return _agent(await Agents(self._runtime, caller).stop(name))

    async def delete_agent(self, name: str, caller: Caller) -> Any:
        await Agents(self._runtime, caller).remove(name)
        return f"{name} is deleted"

    async def assign(self, agent: str, connectors: Sequence[str], caller: Caller) -> Any:
        return _agent(await Agents(self._runtime, caller).assign(agent, *connectors))

    async def unassign(self, agent: str, connectors: Sequence[str], caller: Caller) -> Any:
        return _agent(await Agents(self._runtime, caller).unassign(agent, *connectors))

    async def list_connectors(self, caller: Caller) -> Any:
        return [
            _named(view)
            for view in await Connectors(self._runtime, caller).list()
            if view.tools or _is_real(view)
        ]

    async def list_tools(self, connector: str | None, caller: Caller) -> Any:
        here = await self._runtime.active.narrowed(caller)
        tools = Tools(self._runtime, here).list(connector)
        lines = [{"name": one.name, "what": one.definition.description[:120]} for one in tools[:_MOST_TOOLS]]
        return {"tools": lines, "shown": f"{len(lines)} of {len(tools):,}"}

    async def add_connector(self, facts: Mapping[str, Any], caller: Caller) -> Any:
        wanted = {name: value for name, value in facts.items() if value not in (None, "", [])}
        return _connector(await Connectors(self._runtime, caller).add(wanted.pop("name"), **wanted))

    async def remove_connector(self, name: str, caller: Caller) -> Any:
        await Connectors(self._runtime, caller).remove(name)
        return f"{name} is removed"

    async def admit(
        self, name: str, marks: Annotations, arguments: Mapping[str, Any], caller: Caller, attempt: OfferCall
    ) -> None:
        definition = ToolDefinition(original_name=name, title=name.replace("_", " "), annotations=marks)
        function = Tool(
            name=name,
            workspace=caller.workspace,
            connector_id=OWN,
            slug=OWN,
            definition=definition,
            fingerprint=definition.fingerprint,
            is_mcp=False,
        )
        call = ToolCall(
            tool=name,
            arguments=arguments,
            patience=QUESTION_LASTS.total_seconds(),
            observer=attempt.observer,
        )
        await self._runtime.approvals.admit(function, _ITSELF, caller, arguments, call)


def _agent(agent: Agent) -> dict[str, Any]:
    """By name only: what others wrote of it would be more than the person's own words."""
    return {
        "name": agent.name,
        "kind": agent.kind,
        "status": agent.status,
        "connectors": "all that are active" if agent.connectors is None else [*agent.connectors],
        **({"shared": True} if agent.kind == "worker" and not agent.owner else {}),
    }


def _named(view: ConnectorView) -> dict[str, Any]:
    return {
        "name": view.connector.slug,
        "enabled": view.connector.enabled,
        "state": view.status.state,
        "tools": view.tools,
    }


def _connector(view: ConnectorView) -> dict[str, Any]:
    return {
        **_named(view),
        "description": view.connector.description,
        "cause": view.status.cause,
        **({"notices": [*view.notices]} if view.notices else {}),
    }


def _is_real(view: ConnectorView) -> bool:
    return view.connector.kind != "native"
