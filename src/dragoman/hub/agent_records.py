"""Agents as they are stored, remembered for a moment: every step of every run asks for them."""

from collections.abc import Sequence
from time import monotonic

from dragoman.agent import Agent
from dragoman.events import Event, Events
from dragoman.scope import APP, Caller
from dragoman.store.protocols import AgentStore

FRESH = 2.0  # seconds until a change made in another process is seen


class AgentRecords:
    def __init__(self, rows: AgentStore, events: Events) -> None:
        self._rows = rows
        self._events = events
        self._kept: dict[str, tuple[float, Sequence[Agent]]] = {}
        self._changes = 0

    async def of(self, workspace: str) -> Sequence[Agent]:
        kept = self._kept.get(workspace)
        if kept is not None and monotonic() - kept[0] < FRESH:
            return kept[1]
        changes = self._changes
        agents = [*await self._rows.list(workspace)]
        if changes == self._changes:  # else this may be how it was before
            self._kept[workspace] = (monotonic(), agents)
        return agents

    async def seen_by(self, caller: Caller) -> Sequence[Agent]:
        return [agent for agent in await self.of(caller.workspace) if _sees(agent, caller)]

    async def of_connectors(self, caller: Caller) -> dict[str | None, Agent]:
        """By connector: the app's, then the workspace's and the user's."""
        stored = [*await self.of(APP), *await self.of(caller.workspace)]
        return {one.connector_id: one for one in stored if one.kind == "connector" and _sees(one, caller)}

    def forget(self, workspace: str) -> None:
        """Something of its agents changed: the next question asks the store."""
        self._changes += 1
        self._kept.pop(workspace, None)

    def forget_all(self) -> None:
        self._changes += 1
        self._kept.clear()

    def tell(self, agent: Agent, what: str) -> None:
        """One was made, changed or removed: the next question asks the store, and listeners hear of it."""
        self.forget(agent.workspace)
        facts = {"name": agent.name, "what": what, "status": agent.status}
        self._events.publish(
            Event(kind="agent.changed", workspace=agent.workspace, user=agent.owner, data=facts)
        )


def _sees(agent: Agent, caller: Caller) -> bool:
    return not agent.owner or agent.owner == caller.user
