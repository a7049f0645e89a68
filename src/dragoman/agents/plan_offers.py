"""What an agent has beside tools: `state_plan`, which it will use and why; `ask_person`; `read_earlier`."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.agents.model_errors import failed
from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.prompts import planning, working
from dragoman.agents.work_context import WorkContext
from dragoman.errors import InvalidArguments, NobodyAnswered

READ_EARLIER = "read_earlier"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "tool": {"type": "string", "description": "name of the tool"},
                    "reason": {"type": "string", "description": "why it is needed"},
                    "depends_on": {
                        "type": "array",
                        "items": {"type": "integer"},
                        "description": "numbers (from 1) of the steps whose results it needs",
                    },
                },
                "required": ["tool", "reason"],
            },
        }
    },
    "required": ["steps"],
}
_MOST_STEPS = 50
ASK_PERSON = "ask_person"
_EARLIER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"handle": {"type": "string", "description": "as it is named, for example 41.2"}},
    "required": ["handle"],
}


class PlanOffers:
    """Fills `Offers`. Where only the plan is wanted, nothing else is offered and the tools are described."""

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        async def state(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            steps = _steps(arguments.get("steps"))
            work.services.state_plan(steps)
            is_all = work.run.options.get("plan_only")
            return ToolReply(
                content="Noted. That was all: say the plan in a sentence." if is_all else "Noted. Go on."
            )

        description = (
            "Says your plan before you begin: which tools, why, and which step needs which other's result."
        )
        facts = {"tools": await work.toolbox.tools(work.caller)} if work.run.options.get("plan_only") else {}
        return [
            Offer(
                name="state_plan",
                description=description,
                schema=_SCHEMA,
                perform=state,
                only_reads=True,
                is_own_words=True,
                metadata=facts,
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        cards = await work.toolbox.connectors(work.caller)
        card = next((one for one in cards if one.id == work.agent.connector_id), None)
        if work.run.options.get("plan_only"):
            return planning(card, await work.toolbox.tools(work.caller))
        return working(card, work.run.options.get("max_tools"))


def _steps(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InvalidArguments("steps must be a list of {tool, reason, depends_on}")
    steps: list[dict[str, Any]] = []
    for one in cast("Sequence[Any]", given)[:_MOST_STEPS]:
        facts = cast("Mapping[str, Any]", one) if isinstance(one, Mapping) else {"tool": str(one)}
        needed = facts.get("depends_on")
        depends = (
            [*cast("Sequence[Any]", needed)]
            if isinstance(needed, Sequence) and not isinstance(needed, str)
            else []
        )
        steps.append(
            {
                "tool": str(facts.get("tool", "")),
                "reason": str(facts.get("reason", "")),
                "depends_on": [one for one in depends if isinstance(one, int | str)],
            }
        )
    return steps


_QUESTION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"question": {"type": "string", "description": "one clear question"}},
    "required": ["question"],
}


class PersonOffers:
    """Fills `Offers`."""

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        async def ask(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            question = str(arguments.get("question") or "").strip() or "What do you mean?"
            given = arguments.get("fields")  # a schema: only the offline model asks by a form
            fields = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else None
            try:
                return ToolReply(content=await work.services.ask_person(question, fields, attempt))
            except NobodyAnswered as error:
                return failed(error)

        return [
            Offer(
                name=ASK_PERSON,
                description="Asks the person you work for when a value is missing or the request is unclear,"
                " and waits for the answer.",
                schema=_QUESTION_SCHEMA,
                perform=ask,
                is_own_words=True,
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        return ""


class EarlierOffers:
    """Fills `Offers`: what a tool brought in an earlier run of the thread, which the history only names."""

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        async def read(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            handle = str(arguments.get("handle") or "").strip()
            found = await work.services.earlier_result(handle)
            if found is None:
                why = f"There is no earlier result {handle[:40]!r}. Use one as it is named, or call the tool."
                return ToolReply(content=why, ok=False, code="not_found", is_own_words=True)
            return ToolReply(content=found.content, contexts=found.contexts)

        if not work.names_earlier:
            return []
        return [
            Offer(
                name=READ_EARLIER,
                description="Shows a result of before again, whole. It may be out of date by now.",
                schema=_EARLIER_SCHEMA,
                perform=read,
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        return ""
