"""`ask_person`: a question to the person whom the agent works for. The run goes on with the answer."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.work_context import WorkContext
from dragoman.errors import NobodyAnswered

_SCHEMA: Mapping[str, Any] = {
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
                return ToolReply(content=error.message, ok=False, code=error.code)

        return [
            Offer(
                name="ask_person",
                description="Asks the person you work for when a value is missing or the request is unclear."
                " Waits for the answer. Do not ask for what the conversation already says.",
                schema=_SCHEMA,
                perform=ask,
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        return ""
