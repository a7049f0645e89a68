"""Agents as they are stored, remembered for a moment: every step of every run asks for them."""

from collections.abc import Sequence
from time import monotonic

from dragoman.agent import Agent
from dragoman.hub.agent_rules import sees
from dragoman.scope import APP, Caller
from dragoman.store.protocols import AgentStore

FRESH = 2.0  # seconds until a change made in another process is seen


class AgentRecords:
    def __init__(self, rows: AgentStore) -> None:
        self._rows = rows
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
        return [agent for agent in await self.of(caller.workspace) if sees(agent, caller)]

    async def of_connectors(self, caller: Caller) -> dict[str | None, Agent]:
        """By connector: the app's, then the workspace's and the user's."""
        stored = [*await self.of(APP), *await self.of(caller.workspace)]
        return {one.connector_id: one for one in stored if one.kind == "connector" and sees(one, caller)}

    def changed(self, workspace: str) -> None:
        self._changes += 1
        self._kept.pop(workspace, None)
