"""Agents that people import and export. `FoundAgent` is how the formats know them: connectors are named as
written there, and by slug here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dragoman.agent import Agent, AgentProfile
from dragoman.formats import FoundAgent
from dragoman.hub.agents import Agents, settings_in
from dragoman.hub.bound import BoundService
from dragoman.scope import Caller
from dragoman.setting import people_set


class ImportedAgents(BoundService):
    """The caller's own workers."""

    __slots__ = ()

    async def list(self) -> Sequence[FoundAgent]:
        """As a file would describe them, by name."""
        agents = await Agents(self._runtime, self._caller).list()
        return [_found(agent) for agent in agents if _is_own(agent, self._caller)]

    async def put(self, agents: Iterable[FoundAgent]) -> None:
        """Each in the place of the one that had its name."""
        own = Agents(self._runtime, self._caller)
        for found in agents:
            known = await own.find(found.name)
            if known is None or not _is_own(known, self._caller):
                known = await own.create(found.name)
            await own.describe(known.name, settings_in(found, self._runtime.registry, self._caller))


def comparable(agent: FoundAgent) -> FoundAgent:
    """As it is kept: whether its servers are discovered by themselves is the connector's business."""
    return replace(agent, auto_discover=True, connectors=agent.connectors or ())


def _is_own(agent: Agent, caller: Caller) -> bool:
    return agent.kind == "worker" and agent.owner == caller.user and agent.workspace == caller.workspace


def _found(agent: Agent) -> FoundAgent:
    settings = {one.path[0]: getattr(agent, one.path[0]) for one in people_set(AgentProfile)}
    return FoundAgent(name=agent.name, **settings)
