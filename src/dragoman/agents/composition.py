"""How an agent is put together for one run: its model, its way to tools, its instructions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.agent import Agent, AgentKind, Exposure
from dragoman.agents.catalog_offers import CatalogOffers
from dragoman.agents.models import Choice, Models
from dragoman.agents.offers import Offers
from dragoman.agents.person_offers import PersonOffers
from dragoman.agents.plan_offers import PlanOffers
from dragoman.agents.prompts import instructions_for
from dragoman.agents.search_offers import SearchOffers
from dragoman.agents.work import Work

if TYPE_CHECKING:
    from pydantic_ai.models import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    agent: Agent
    choice: Choice
    model: "Model"
    exposure: Exposure
    sources: tuple[Offers, ...]
    instructions: str
    tokens_hidden: int = 0


class Composer:
    """`functions` are what agents of a kind have beside tools."""

    def __init__(
        self,
        models: Models,
        *,
        budget: int,
        functions: Mapping[AgentKind, Sequence[Offers]],
    ) -> None:
        self._models = models
        self._budget = budget
        self._functions = functions

    async def compose(self, work: Work) -> Composed:
        choice = await self._models.choose(work.run.options.get("model") or _model_of(work.agent))
        exposure = await self._exposure(work, choice)
        sources = self._sources(work, exposure)
        notes = [await source.instructions(work) for source in sources]
        return Composed(
            agent=work.agent,
            choice=choice,
            model=self._models.open(choice),
            exposure=exposure,
            sources=sources,
            instructions="\n\n".join([instructions_for(work.agent), *filter(None, notes)]),
        )

    def _sources(self, work: Work, exposure: Exposure) -> tuple[Offers, ...]:
        if work.run.options.get("plan_only"):
            return (PlanOffers(),)
        tools: Offers = SearchOffers() if exposure == "search" else CatalogOffers()
        return (tools, PersonOffers(), *self._functions.get(work.agent.kind, ()))

    async def _exposure(self, work: Work, choice: Choice) -> Exposure:
        """Forced by the request or the agent; else few tools directly and many by search."""
        forced = work.run.options.get("exposure") or work.agent.exposure
        if forced != "auto":
            return forced
        if work.agent.kind == "connector":
            return "direct"  # it knows its tools in full
        if choice.is_offline:
            return "direct"  # nothing to save, and it reads definitions better than hints
        tools = await work.toolbox.tools(work.caller)
        return "direct" if sum(map(work.toolbox.tokens, tools)) <= self._budget else "search"


def _model_of(agent: Agent) -> str | None:
    return ",".join((agent.model, *agent.fallbacks)) if agent.model else None
