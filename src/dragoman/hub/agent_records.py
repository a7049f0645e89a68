"""Agents as they are stored, remembered for a moment: every step of every run asks for them."""

from collections.abc import Sequence

from dragoman.agent import Agent
from dragoman.events import Event, Events
from dragoman.remembered import Remembered
from dragoman.scope import APP, Caller
from dragoman.store.protocols import AgentStore

FRESH = 2.0  # seconds until a change made in another process is seen


class AgentRecords:
    def __init__(self, rows: AgentStore, events: Events) -> None:
        self._rows = rows
        self._events = events
        self._kept = Remembered(rows.list, FRESH)

    async def of(self, workspace: str) -> Sequence[Agent]:
        return await self._kept.get(workspace)

    async def seen_by(self, caller: Caller) -> Sequence[Agent]:
        return [agent for agent in await self.of(caller.workspace) if _sees(agent, caller)]

    async def of_connectors(self, caller: Caller) -> dict[str | None, Agent]:
        """By connector: the app's, then the workspace's and the user's."""
        stored = [*await self.of(APP), *await self.of(caller.workspace)]
        return {one.connector_id: one for one in stored if one.kind == "connector" and _sees(one, caller)}

    def forget(self, workspace: str) -> None:
        """Something of its agents changed: the next question asks the store."""
        self._kept.forget(workspace)

    def forget_all(self) -> None:
        self._kept.forget_all()

    def tell(self, agent: Agent, what: str) -> None:
        """One was made, changed or removed: the next question asks the store, and listeners hear of it."""
        self.forget(agent.workspace)
        facts = {"name": agent.name, "what": what, "status": agent.status}
        self._events.publish(
            Event(kind="agent.changed", workspace=agent.workspace, user=agent.owner, data=facts)
        )


def _sees(agent: Agent, caller: Caller) -> bool:
    return not agent.owner or agent.owner == caller.user
