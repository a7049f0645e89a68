"""`state_plan`: a connector's agent says which tools it will use, why and in which order."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.agents.offers import Attempt, Offer, Told
from dragoman.agents.work import Work
from dragoman.errors import InvalidArguments

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


class PlanOffers:
    """Fills `Offers`. Where only the plan is wanted, nothing else is offered and the tools are described."""

    async def list(self, work: Work) -> Sequence[Offer]:
        async def state(arguments: Mapping[str, Any], attempt: Attempt) -> Told:
            steps = _steps(arguments.get("steps"))
            work.desk.state_plan(steps)
            is_all = work.run.options.get("plan_only")
            return Told(
                content="Noted. That was all: say the plan in a sentence." if is_all else "Noted. Go on."
            )

        description = (
            "Says your plan before you begin: which tools, why, and which step needs which other's result."
        )
        return [Offer(name="state_plan", description=description, schema=_SCHEMA, perform=state)]

    async def instructions(self, work: Work) -> str:
        if not work.run.options.get("plan_only"):
            return (
                "First state your plan with state_plan. Then carry it out. In your answer cite the source of"
                " each fact by its id in brackets, as [c1]; cite only ids that results gave you."
            )
        tools = await work.toolbox.tools(work.caller)
        lines = "\n".join(
            f"- {tool.name}: {tool.definition.description}\n  {json.dumps(tool.definition.input_schema)}"
            for tool in tools
        )
        return (
            f"Only a plan is wanted: state it with state_plan and call nothing. Your tools would be:\n{lines}"
        )


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
