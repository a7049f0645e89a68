"""Who there is: agents as runs and other agents find them. What a caller may not see is absent."""

from collections.abc import Sequence
from typing import Protocol

from dragoman.agent import Agent
from dragoman.scope import Caller


class AgentDirectory(Protocol):
    async def find(self, name: str, caller: Caller) -> Agent | None:
        """The assistant, a worker of theirs or of the workspace, or a connector's agent by its slug."""
        ...

    async def list(self, caller: Caller) -> Sequence[Agent]:
        """By name, stopped ones too."""
        ...

    async def find_for(self, connector_id: str, caller: Caller) -> Agent | None:
        """The agent of a connector, whatever name it goes by."""
        ...


def caller_of(agent: Agent, caller: Caller) -> Caller:
    """Whom an agent works for, with no more than the agent itself may."""
    if agent.capabilities is not None:
        caller = caller.narrowed(agent.capabilities)
    if agent.connectors is not None:
        caller = caller.limited_to(f"mcp_{slug}" for slug in agent.connectors)
    return caller
