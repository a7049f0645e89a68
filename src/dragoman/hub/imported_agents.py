"""Agents that files describe: imported ones become workers, those of the app's folder are read with it.

`FoundAgent` is how the formats know them; connectors are named as written there and by slug here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dragoman.agent import Agent
from dragoman.formats import FoundAgent
from dragoman.hub.agents import Agents
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.names import slug_from
from dragoman.scope import APP, Caller

FROM_FILES = "agt_file_"


class ImportedAgents:
    """Each caller's own."""

    def __init__(self, agents: Agents, registry: ConnectorRegistry) -> None:
        self._agents = agents
        self._registry = registry

    async def list(self, caller: Caller) -> Sequence[FoundAgent]:
        """The caller's own workers as a file would describe them, by name."""
        return [_found(agent) for agent in await self._agents.list(caller) if _is_own(agent, caller)]

    async def put(self, agents: Iterable[FoundAgent], caller: Caller) -> None:
        """Each in the place of the one that had its name."""
        for found in agents:
            known = await self._agents.find(found.name, caller)
            if known is None or not _is_own(known, caller):
                known = await self._agents.create(found.name, caller=caller)
            await self._agents.describe(
                known.name,
                caller,
                description=found.description,
                instructions=found.instructions,
                model=found.model,
                connectors=self.slugs(found, caller),
            )

    def of_files(self, agents: Iterable[FoundAgent], caller: Caller) -> Sequence[Agent]:
        """Workers of the app, as its folder describes them now."""
        return [
            Agent(
                id=f"{FROM_FILES}{found.name.casefold()}",
                workspace=APP,
                name=found.name,
                kind="worker",
                description=found.description,
                instructions=found.instructions,
                model=found.model,
                connectors=self.slugs(found, caller),
            )
            for found in agents
        ]

    def slugs(self, found: FoundAgent, caller: Caller) -> tuple[str, ...]:
        """A connector that is not there yet is kept under the slug that it would have."""
        known = [(name, self._registry.find(name, caller)) for name in found.connectors]
        return tuple(dict.fromkeys(one.slug if one else slug_from(name) for name, one in known))


def comparable(agent: FoundAgent) -> FoundAgent:
    """As it is kept: whether its servers are discovered by themselves is the connector's business."""
    return replace(agent, auto_discover=True)


def _is_own(agent: Agent, caller: Caller) -> bool:
    return agent.kind == "worker" and agent.owner == caller.user and agent.workspace == caller.workspace


def _found(agent: Agent) -> FoundAgent:
    return FoundAgent(
        name=agent.name,
        description=agent.description,
        instructions=agent.instructions,
        model=agent.model,
        connectors=agent.connectors or (),
    )
