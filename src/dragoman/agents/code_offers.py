"""`run_code`: code that the model writes and that calls tools. Only what it prints or returns comes back.

Its calls take the road by the way "code", each with the rights of the agent, and wait there for a person
where one has to allow them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.work_context import WorkContext

NAME = "run_code"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "Python; its last expression is the result"}},
    "required": ["code"],
}


class CodeOffers:
    """Fills `Offers`. `is_only_way`: the tools that code may call are not offered in another form."""

    def __init__(self, *, is_only_way: bool = False) -> None:
        self._is_only_way = is_only_way

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        if self._is_only_way:
            work.hidden[NAME] = sum(
                work.toolbox.tokens(tool)
                for tool in await work.toolbox.tools(work.caller)
                if work.toolbox.is_open_to_code(tool)
            )

        async def run(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            return await work.toolbox.run_code(str(arguments.get("code") or ""), work.caller, attempt)

        return [
            Offer(
                name=NAME,
                description=work.toolbox.code_guide(),
                schema=_SCHEMA,
                perform=run,
                title="Run code",
                repeatable=False,
                departs_itself=True,  # code that only read is run again after a crash
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        if not self._is_only_way:
            return "For many calls or many rows write code: run_code. For a few calls call the tools."
        return (
            "You reach your tools by code: run_code. Look for them inside it with search_tools and"
            " describe_tool, and return only what you need to know."
        )
