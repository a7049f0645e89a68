"""How an agent is put together for one run: its model, its way to tools, its instructions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dragoman.agent import Agent, AgentKind, Exposure
from dragoman.agents.catalog_offers import CatalogOffers, CodeOffers, NativeOffers, SearchOffers
from dragoman.agents.delegation_offers import DEEPEST
from dragoman.agents.exposure import Arm, ExposureChoice, ExposureInputs, checked_exposure, choose
from dragoman.agents.fences import has_fence
from dragoman.agents.models import ModelChoice, Models
from dragoman.agents.offers import Offers
from dragoman.agents.plan_offers import EarlierOffers, PersonOffers, PlanOffers
from dragoman.agents.prompts import instructions_for, situation
from dragoman.agents.rollout import RolloutArms
from dragoman.agents.work_context import WorkContext
from dragoman.people import find_zone
from dragoman.run import OTHERS, TIME_ZONE, Run

if TYPE_CHECKING:
    from pydantic_ai.models import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedAgent:
    agent: Agent
    choice: ModelChoice
    models: "tuple[Model, ...]"
    exposure: Exposure
    sources: tuple[Offers, ...]
    instructions: str
    arm: Arm | None = None
    why: str = ""


class Composer:
    """`models` are those of a workspace. `functions` are what agents of a kind have beside tools;
    `delegation` reaches the connectors'.
    """

    def __init__(
        self,
        models: Callable[[str], Awaitable[Models]],
        *,
        budget: int,
        functions: Mapping[AgentKind, Sequence[Offers]],
        delegation: Sequence[Offers] = (),
        arms: RolloutArms | None = None,
    ) -> None:
        self._models = models
        self._budget = budget
        self._functions = functions
        self._delegation = delegation
        self._arms = arms

    async def compose(self, work: WorkContext) -> ComposedAgent:
        wished = work.run.options.get("model")
        models = await self._models(work.run.workspace)
        choice = await (
            models.choose(wished) if wished else models.choose(work.agent.model, work.agent.fallbacks)
        )
        # The offline model tells a person what a tool brought: of one agent alone that is the source itself.
        work.cites = work.agent.kind == "connector" or not choice.is_offline
        forced = checked_exposure(work.run.options.get("exposure") or work.agent.exposure)
        chosen = await self._chosen(work, choice, forced)
        sources = self._sources(work, chosen, forced)
        notes = [await source.instructions(work) for source in sources]
        person = await work.toolbox.person(work.caller)
        zone = find_zone(person.time_zone or work.run.options.get(TIME_ZONE) or "")
        now = situation(person, work.run.options.get(OTHERS, ()), datetime.now(UTC).astimezone(zone))
        instructions = "\n\n".join([instructions_for(work.agent), *filter(None, notes), now])
        work.has_heard_others |= has_fence(instructions)
        return ComposedAgent(
            agent=work.agent,
            choice=choice,
            models=models.open_all(choice),
            exposure=chosen.exposure,
            sources=sources,
            instructions=instructions,
            arm=chosen.arm,
            why=chosen.why,
        )

    def _sources(self, work: WorkContext, chosen: ExposureChoice, forced: Exposure) -> tuple[Offers, ...]:
        if work.run.options.get("plan_only"):
            return (PlanOffers(),)
        tools: dict[Exposure, tuple[Offers, ...]] = {
            "direct": (CatalogOffers(),),
            "search": (SearchOffers(hides_all=forced == "search"),),
            "delegate": (NativeOffers(), *self._delegation),
            "code": (CodeOffers(), SearchOffers(beside_code=True)),
        }
        functions = self._functions.get(work.agent.kind, ())
        return (*tools[chosen.exposure], EarlierOffers(), PersonOffers(), *functions)

    async def _chosen(self, work: WorkContext, choice: ModelChoice, forced: Exposure) -> ExposureChoice:
        toolbox, caller = work.toolbox, work.caller
        tools = await toolbox.tools(caller)
        cards = await toolbox.connectors(caller)
        arm, is_counted = await self._arms.way_of(caller) if self._arms is not None else ("agents", False)
        chosen = choose(
            ExposureInputs(
                forced=forced,
                kind=work.agent.kind,
                is_offline=choice.is_offline,
                is_deferred=bool(await toolbox.deferred(caller)),
                tools=len(tools),
                tokens=sum(map(toolbox.tokens, tools)),
                budget=self._budget,
                has_code=any(map(toolbox.is_open_to_code, tools)),
                can_delegate=len(work.chain) < DEEPEST and any(card.state != "disabled" for card in cards),
                arm=arm,
                is_counted=is_counted,
            )
        )
        if work.run.exposure is None:
            return chosen
        # Taken up again after a restart: it goes on as it began.
        return replace(chosen, exposure=work.run.exposure, arm=_arm(work.run), why="as it began")


def _arm(run: Run) -> Arm | None:
    return run.arm if run.arm in ("agents", "direct") else None
