"""`read_earlier`: what a tool brought in an earlier run of the thread, where the history only names it."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.agents.history import READ_EARLIER
from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.work_context import WorkContext

_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"handle": {"type": "string", "description": "as it is named, for example 41.2"}},
    "required": ["handle"],
}


class EarlierOffers:
    """Fills `Offers`."""

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
                schema=_SCHEMA,
                perform=read,
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        return ""
