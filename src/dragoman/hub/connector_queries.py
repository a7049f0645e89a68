"""`query_mcp_connector` for people and outside clients: a run of one connector's agent, waited for."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dragoman.agents.connector_choice import ConnectorChoice, choose
from dragoman.agents.connector_query import ConnectorQuery, answered, find_card
from dragoman.agents.work_context import ConnectorCard, Toolbox
from dragoman.errors import Conflict, DragomanError, NotFound
from dragoman.hub.agents import Agents
from dragoman.hub.runs import Runs
from dragoman.run import Run, RunEvent, RunLimits, new_run_id
from dragoman.scope import Caller


@dataclass(frozen=True, slots=True)
class AcceptedQuery:
    """A query that was accepted: its run is on disk."""

    run: Run
    card: ConnectorCard


class ConnectorQueries:
    """Every method acts for `caller`, by default the hub's own."""

    def __init__(
        self, *, caller: Caller, toolbox: Toolbox, agents: Agents, runs: Runs, limits: RunLimits
    ) -> None:
        self._caller = caller
        self._toolbox = toolbox
        self._agents = agents
        self._runs = runs
        self._limits = limits

    async def ask(
        self,
        query: ConnectorQuery,
        caller: Caller | None = None,
        heard: Callable[[RunEvent], Awaitable[None]] | None = None,
    ) -> dict[str, Any]:
        """`{status, data, metadata}`, and `error` where there is one. Whatever goes wrong is in it.

        `heard` is told what happens meanwhile. Who no longer waits for the answer stops the run.
        """
        begun = await self.begin(query, caller)
        if not isinstance(begun, AcceptedQuery):
            return begun
        try:
            if heard is not None:
                async for event in self._runs.follow(begun.run.id, caller=caller):
                    await heard(event)
            return await self.result(begun)
        except asyncio.CancelledError:
            with suppress(DragomanError):  # it has just ended, or cannot be reached
                await self._runs.cancel(begun.run.id, caller)
            raise

    async def begin(
        self, query: ConnectorQuery, caller: Caller | None = None
    ) -> AcceptedQuery | dict[str, Any]:
        """The accepted run; or the answer, where nobody can begin."""
        caller = caller or self._caller
        chosen = await choose(query, self._toolbox, self._agents, caller)
        if not isinstance(chosen, ConnectorChoice):
            return chosen
        run_id = new_run_id()
        run = Run(
            id=run_id,
            root=run_id,
            workspace=caller.workspace,
            user=caller.user,
            thread="",
            agent=chosen.agent.name,
            request=query.query,
            options=query.options,
            limits=self._limits,
            role=caller.role,
            grants=caller.grants,
        )
        return AcceptedQuery((await self._runs.accept(run, None)).run, chosen.card)

    async def answer(self, connector: str, run: str, caller: Caller | None = None) -> dict[str, Any]:
        """Of a query to this connector that was begun before, once its run has ended."""
        caller = caller or self._caller
        found = await self._runs.get(run, caller)
        card = find_card(connector, await self._toolbox.connectors(caller))
        agent = await self._agents.find_for(card.id, caller) if card is not None else None
        if card is None or agent is None or agent.name != found.agent:
            raise NotFound(
                f"{run[:80]!r} is no query to {connector[:80]!r}", hint=f"dragoman runs show {found.id}"
            )
        if not found.is_finished:
            raise Conflict(f"{found.id} is {found.status}", hint=f"dragoman runs follow {found.id}")
        return answered(card, found)

    async def result(self, begun: AcceptedQuery) -> dict[str, Any]:
        """Waits for the end of its run."""
        return answered(begun.card, await self._runs.finished(begun.run))
