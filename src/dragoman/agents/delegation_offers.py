"""Handing work on: `query_mcp_connector` to a connector's agent, `ask_agent` to a worker.

A chain of delegations has an end: no agent twice in it, and no more than a few.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dragoman.agent import Agent
from dragoman.agents import connector_query
from dragoman.agents.citations import sources_of, without_citations
from dragoman.agents.connector_choice import ConnectorChoice, choose
from dragoman.agents.connector_query import ConnectorQuery, answered, refused, told_of
from dragoman.agents.fences import fenced, one_line
from dragoman.agents.model_errors import failed, failure
from dragoman.agents.offers import Offer, OfferCall, ToolReply, digest_of
from dragoman.agents.work_context import AgentsOf, WorkContext
from dragoman.errors import Conflict, InvalidArguments, NotFound
from dragoman.run import RunError

DEEPEST = 4
_LONGEST_LINE = 300
_ASK_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "agent": {"type": "string", "description": "name of the agent"},
        "request": {"type": "string", "description": "what it should do, with all it needs to know"},
    },
    "required": ["agent", "request"],
}


class ConnectorOffers:
    """Fills `Offers`: `query_mcp_connector`, with id, description and state of every connector."""

    def __init__(self, agents_of: AgentsOf) -> None:
        self._agents_of = agents_of

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        if len(work.chain) >= DEEPEST or not await work.toolbox.connectors(work.caller):
            return []

        async def query(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            result = await self._query(ConnectorQuery.read(arguments), attempt, work)
            digest = digest_of([without_citations(result["data"] or ""), result.get("error")])
            return replace(told_of(result), digest=digest)

        return [
            Offer(
                name=connector_query.NAME,
                description=connector_query.DESCRIPTION,
                schema=connector_query.SCHEMA,
                perform=query,
                title="Ask a connector",
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        cards = await work.toolbox.connectors(work.caller)
        if not cards or len(work.chain) >= DEEPEST:
            return ""
        names: dict[str | None, list[str]] = {}
        for tool in await work.toolbox.tools(work.caller):
            names.setdefault(tool.connector_id, []).append(tool.original_name)
        lines = "\n".join(card.line(names.get(card.id, ())) for card in cards)
        return (
            f"Connectors that you can hand a job to with {connector_query.NAME} (id: what, state):"
            f"\n{fenced(lines)}"
        )

    async def _query(self, query: ConnectorQuery, attempt: OfferCall, work: WorkContext) -> dict[str, Any]:
        chosen = await choose(query, work.toolbox, self._agents_of, work.caller)
        if not isinstance(chosen, ConnectorChoice):
            return chosen
        card, agent = chosen.card, chosen.agent
        if agent.name in (*work.chain, work.agent.name):
            message = f"{card.slug!r} is already at work on this request"
            return refused(card, "MCP_ORCHESTRATION_FAILED", "cycle", message, "answer without it")
        delegated = await work.services.delegate(agent, query.query, query.options, attempt)
        return answered(card, delegated.run)


class AgentOffers:
    """Fills `Offers`: `ask_agent`. A delegation is seen in the thread as a mention, with its answer."""

    def __init__(self, agents_of: AgentsOf) -> None:
        self._agents_of = agents_of

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        others = await self._others(work)
        if len(work.chain) >= DEEPEST or not others:
            return []

        async def ask(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            return await self._ask(arguments, attempt, work)

        return [
            Offer(
                name="ask_agent",
                description="Has another agent do a job with its own tools, and brings its answer.",
                schema=_ASK_SCHEMA,
                perform=ask,
                title="Ask an agent",
                metadata={"known": {"agent": [one.name for one in others]}},
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        others = await self._others(work)
        if not others or len(work.chain) >= DEEPEST:
            return ""
        lines = "\n".join(
            f"- {one.name}: {one_line(one.description or 'no description', _LONGEST_LINE)}" for one in others
        )
        # The bare names of the person's own agents are their words; a shared agent was named by anybody.
        is_own = all(one.owner == work.run.user and not one.description for one in others)
        return f"Agents that you can ask with ask_agent:\n{lines if is_own else fenced(lines)}"

    async def _ask(self, arguments: Mapping[str, Any], attempt: OfferCall, work: WorkContext) -> ToolReply:
        name = str(arguments.get("agent") or "").strip().removeprefix("@")
        request = str(arguments.get("request") or "").strip()
        if not name or not request:
            raise InvalidArguments("agent and request are needed", hint="ask_agent(agent, request)")
        agent = await self._agents_of(work.caller).find(name)
        known = ", ".join(one.name for one in await self._others(work)) or "none"
        if agent is None or agent.status == "stopped":
            state = "is stopped" if agent else "is not known"
            return failed(NotFound(f"the agent {name!r} {state}", hint=f"at work are: {known}"))
        if agent.name in (*work.chain, work.agent.name):
            message = f"{agent.name} is already at work on this request: no cycles"
            return failure(Conflict.code, message, cause="cycle")
        delegated = await work.services.delegate(agent, request, {"visible": True}, attempt)
        run = delegated.run
        if run.status == "done":
            return ToolReply(
                content={"agent": agent.name, "answer": run.answer},
                contexts=sources_of(delegated.told),
                digest=digest_of(without_citations(run.answer or "")),
            )
        return failed(run.error or RunError(code=run.status, message=f"{agent.name} was {run.status}"))

    async def _others(self, work: WorkContext) -> Sequence[Agent]:
        return [
            agent
            for agent in await self._agents_of(work.caller).list()
            if agent.kind == "worker" and agent.status == "active" and agent.name != work.agent.name
        ]
