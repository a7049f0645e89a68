"""Whom a query is for: the agent of a connector that can work now, or why there is none."""

from dataclasses import dataclass
from typing import Any

from dragoman.agent import Agent
from dragoman.agents.connector_query import ConnectorQuery, find_card, not_able, not_there, refused
from dragoman.agents.work_context import AgentsOf, ConnectorCard, Toolbox
from dragoman.scope import Caller


@dataclass(frozen=True, slots=True)
class ConnectorChoice:
    card: ConnectorCard
    agent: Agent


async def choose(
    query: ConnectorQuery, toolbox: Toolbox, agents_of: AgentsOf, caller: Caller
) -> ConnectorChoice | dict[str, Any]:
    """The answer itself where nobody can begin. What could not be reached before is tried once."""
    cards = await toolbox.connectors(caller)
    card = find_card(query.connector_id, cards)
    if card is None:
        return not_there(query, cards)
    if card.state == "error" or (card.state == "ready" and not card.tools):
        card = await toolbox.connect(card, caller)
    if answer := not_able(card):
        return answer
    agent = await agents_of(caller).find_for(card.id)
    if agent is None or agent.status == "stopped":
        message = f"the agent of {card.slug!r} is stopped"
        hint = f"dragoman agents start {agent.name if agent else card.slug}"
        return refused(card, "MCP_ORCHESTRATION_FAILED", "stopped", message, hint)
    return ConnectorChoice(card, agent)
