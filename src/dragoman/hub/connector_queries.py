"""`query_mcp_connector` for people and outside clients: a run of one connector's agent, waited for."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dragoman.agents.connector_choice import ConnectorChoice, choose
from dragoman.agents.connector_query import ConnectorQuery, answered, find_card, still_waiting
from dragoman.agents.work_context import ConnectorCard
from dragoman.errors import Conflict, DragomanError, NotFound
from dragoman.hub.agents import Agents
from dragoman.hub.bound import BoundService
from dragoman.hub.runs import Runs
from dragoman.run import KEY, Run, RunEvent, new_run_id


@dataclass(frozen=True, slots=True)
class AcceptedQuery:
    """A query that was accepted: its run is on disk."""

    run: Run
    card: ConnectorCard


class ConnectorQueries(BoundService):
    """What the caller has agents of connectors do."""

    __slots__ = ()

    async def ask(
        self,
        query: ConnectorQuery,
        heard: Callable[[RunEvent], Awaitable[None]] | None = None,
        *,
        patience: float | None = None,
        run: str | None = None,
    ) -> dict[str, Any]:
        """`{status, data, metadata}`, and `error` where there is one. Whatever goes wrong is in it.

        `heard` is told what happens meanwhile. Who no longer waits for the answer stops the run. A run that
        waits for a person for longer than `patience` goes on alone: the answer says so, and asking again with
        its id as `run` has the rest.
        """
        begun = await self.begin(query) if run is None else await self._begun(query.connector_id, run)
        if not isinstance(begun, AcceptedQuery):
            return begun
        waited = asyncio.timeout(None)
        try:
            async with waited:
                if heard is not None or patience is not None:
                    async for event in Runs(self._runtime, self._caller).follow(begun.run.id):
                        if patience is not None and event.kind in ("run.waiting", "run.continued"):
                            is_waiting = event.kind == "run.waiting"
                            until = asyncio.get_running_loop().time() + patience
                            waited.reschedule(until if is_waiting else None)
                        if heard is not None:
                            await heard(event)
                return await self.result(begun)
        except TimeoutError:
            if not waited.expired():
                raise
            return still_waiting(begun.card, begun.run)
        except asyncio.CancelledError:
            with suppress(DragomanError):  # it has just ended, or cannot be reached
                await Runs(self._runtime, self._caller).cancel(begun.run.id)
            raise

    async def begin(self, query: ConnectorQuery) -> AcceptedQuery | dict[str, Any]:
        """The accepted run; or the answer, where nobody can begin."""
        caller, engine = self._caller, self._runtime.engine
        chosen = await choose(query, engine.toolbox, engine.agents_of, caller)
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
            options={**query.options, KEY: caller.key},
            limits=engine.limits,
            role=caller.role,
            grants=caller.grants,
        )
        return AcceptedQuery((await engine.accept(run, None)).run, chosen.card)

    async def answer(self, connector: str, run: str) -> dict[str, Any]:
        """Of a query to this connector that was begun before, once its run has ended."""
        begun = await self._begun(connector, run)
        if not begun.run.is_finished:
            raise Conflict(
                f"{begun.run.id} is {begun.run.status}",
                hint=f"dragoman runs follow {begun.run.id} tells when it has ended",
            )
        return answered(begun.card, begun.run)

    async def _begun(self, connector: str, run: str) -> AcceptedQuery:
        caller = self._caller
        found = await Runs(self._runtime, caller).get(run)
        card = find_card(connector, await self._runtime.engine.toolbox.connectors(caller))
        agent = await Agents(self._runtime, caller).find_for(card.id) if card is not None else None
        if card is None or agent is None or agent.name != found.agent:
            raise NotFound(
                f"{run[:80]!r} is no query to {connector[:80]!r}",
                hint=f"dragoman runs show {found.id} tells what it is",
            )
        return AcceptedQuery(found, card)

    async def result(self, begun: AcceptedQuery) -> dict[str, Any]:
        """Waits for the end of its run."""
        return answered(begun.card, await self._runtime.engine.finished(begun.run))
