"""What the assistant may have the hub do. Fills `Management`; rights are checked by the facades it calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.access import ApprovalGate
from dragoman.access.approvals import QUESTION_LASTS
from dragoman.agent import Agent
from dragoman.agents.offers import OfferCall
from dragoman.connector import Configuration, Connector
from dragoman.hub.agents import Agents
from dragoman.hub.approvals import OWN
from dragoman.hub.connectors import Connectors, ConnectorView
from dragoman.hub.threads import Threads
from dragoman.hub.tools import Tools
from dragoman.scope import APP, Caller
from dragoman.tool import Annotations, Tool, ToolCall, ToolDefinition

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
    def __init__(
        self,
        *,
        agents: Agents,
        connectors: Connectors,
        tools: Tools,
        threads: Threads,
        approvals: ApprovalGate,
    ) -> None:
        self._agents = agents
        self._connectors = connectors
        self._tools = tools
        self._threads = threads
        self._approvals = approvals

    async def list_agents(self, caller: Caller) -> Any:
        return [_agent(agent) for agent in await self._agents.list(caller)]

    async def create_agent(self, facts: Mapping[str, Any], caller: Caller) -> Any:
        wanted = dict(facts)
        return _agent(await self._agents.create(wanted.pop("name"), caller=caller, **wanted))

    async def start_agent(self, name: str, caller: Caller) -> Any:
        return _agent(await self._agents.start(name, caller))

    async def stop_agent(self, name: str, caller: Caller) -> Any:
        return _agent(await self._agents.stop(name, caller))

    async def delete_agent(self, name: str, caller: Caller) -> Any:
        await self._agents.remove(name, caller)
        return f"{name} is deleted"

    async def assign(self, agent: str, connectors: Sequence[str], caller: Caller) -> Any:
        return _agent(await self._agents.assign(agent, *connectors, caller=caller))

    async def unassign(self, agent: str, connectors: Sequence[str], caller: Caller) -> Any:
        return _agent(await self._agents.unassign(agent, *connectors, caller=caller))

    async def list_connectors(self, caller: Caller) -> Any:
        return [
            _connector(view) for view in await self._connectors.list(caller) if view.tools or _is_real(view)
        ]

    async def list_tools(self, connector: str | None, caller: Caller) -> Any:
        here = await self._threads.narrowed(caller)
        tools = self._tools.list(connector, here)
        lines = [{"name": one.name, "what": one.definition.description[:120]} for one in tools[:_MOST_TOOLS]]
        return {"tools": lines, "shown": f"{len(lines)} of {len(tools):,}"}

    async def add_connector(self, facts: Mapping[str, Any], caller: Caller) -> Any:
        wanted = {name: value for name, value in facts.items() if value not in (None, "", [])}
        return _connector(await self._connectors.add(wanted.pop("name"), caller=caller, **wanted))

    async def remove_connector(self, name: str, caller: Caller) -> Any:
        await self._connectors.remove(name, caller)
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
            witness=attempt.witness,
        )
        await self._approvals.admit(function, _ITSELF, caller, arguments, call)


def _agent(agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "kind": agent.kind,
        "status": agent.status,
        "description": agent.description,
        "connectors": "all that are active" if agent.connectors is None else [*agent.connectors],
    }


def _connector(view: ConnectorView) -> dict[str, Any]:
    return {
        "name": view.connector.slug,
        "description": view.connector.description,
        "enabled": view.connector.enabled,
        "state": view.status.state,
        "cause": view.status.cause,
        "tools": view.tools,
    }


def _is_real(view: ConnectorView) -> bool:
    return view.connector.kind != "native"
