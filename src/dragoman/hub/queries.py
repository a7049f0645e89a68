"""`query_mcp_connector` for people and outside clients: a run of one connector's agent, waited for."""

from typing import Any

from dragoman.agents.connector_query import ConnectorQuery, answered, failed, find_card, not_able, not_there
from dragoman.agents.work import Toolbox
from dragoman.hub.agents import Agents
from dragoman.hub.runs import Runs
from dragoman.run import Run, RunLimits, new_run_id
from dragoman.scope import Caller


class Queries:
    """Every method acts for `caller`, by default the hub's own."""

    def __init__(
        self, *, caller: Caller, toolbox: Toolbox, agents: Agents, runs: Runs, limits: RunLimits
    ) -> None:
        self._caller = caller
        self._toolbox = toolbox
        self._agents = agents
        self._runs = runs
        self._limits = limits

    async def ask(self, query: ConnectorQuery, caller: Caller | None = None) -> dict[str, Any]:
        """`{status, data, metadata}`, and `error` where there is one. Whatever goes wrong is in it."""
        begun = await self.begin(query, caller)
        if isinstance(begun, dict):
            return begun
        run, connector = begun
        finished = await self._runs.finished(run)
        cards = await self._toolbox.connectors(caller or self._caller)
        card = find_card(connector, cards)
        return answered(card, finished) if card else not_there(query, cards)

    async def begin(
        self, query: ConnectorQuery, caller: Caller | None = None
    ) -> tuple[Run, str] | dict[str, Any]:
        """The accepted run and its connector; or why there is none."""
        caller = caller or self._caller
        cards = await self._toolbox.connectors(caller)
        card = find_card(query.connector_id, cards)
        if card is None:
            return not_there(query, cards)
        if card.state == "error":
            card = await self._toolbox.connect(card, caller)
        if refused := not_able(query, card):
            return refused
        agent = await self._agents.find_for(card.id, caller)
        if agent is None or agent.status == "stopped":
            cause = f"the agent of {card.slug!r} is stopped"
            return failed(card.id, card.slug, "MCP_ORCHESTRATION_FAILED", cause, "dragoman agents start")
        run_id = new_run_id()
        run = Run(
            id=run_id,
            root=run_id,
            workspace=caller.workspace,
            user=caller.user,
            thread="",
            agent=agent.name,
            request=query.query,
            options=query.options,
            limits=self._limits,
            role=caller.role,
            grants=caller.grants,
        )
        return (await self._runs.accept(run, None)).run, card.id
