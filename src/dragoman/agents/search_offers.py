"""Many tools, few tokens: `search_tools` finds them, and what was found is offered from then on.

In view besides are the tools that are loaded in the thread, and those that are never deferred.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.agents.catalog_offers import offer_of
from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.work_context import WorkContext
from dragoman.tool import Tool

NAME = "search_tools"
_FOUND = 6
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "what the tool should do, in a few words"},
    },
    "required": ["query"],
}


class SearchOffers:
    """Fills `Offers`. `hides_all`: only what was found or loaded is in view, however few tools there are.

    `beside_code`: only those that code may not call, for an agent that reaches the others by code.
    """

    def __init__(self, *, hides_all: bool = False, beside_code: bool = False) -> None:
        self._hides_all = hides_all
        self._beside_code = beside_code

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        tools = await self._among(work)
        if not tools:
            return []
        in_view = await self._in_view(tools, work)
        work.hidden[NAME] = sum(work.toolbox.tokens(tool) for tool in tools.values()) - sum(
            work.toolbox.tokens(tools[name]) for name in in_view
        )

        async def search(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            return await self._search(str(arguments.get("query") or ""), work)

        which = "tools that code may not call, " if self._beside_code else "tools "
        found = "What it finds can be called in the next step."
        description = f"Finds {which}among {len(tools):,} by what they do. {found}"
        finder = Offer(name=NAME, description=description, schema=_SCHEMA, perform=search)
        return [finder, *(offer_of(tools[name], work) for name in in_view)]

    async def instructions(self, work: WorkContext) -> str:
        if self._beside_code:
            return (
                "What changes something is mostly not open to code: find such a tool with search_tools, then"
                " call it."
            )
        return "Not all of your tools are listed: find those you need with search_tools, then call them."

    async def _among(self, work: WorkContext) -> dict[str, Tool]:
        return {
            tool.name: tool
            for tool in await work.toolbox.tools(work.caller)
            if not self._beside_code or not work.toolbox.is_open_to_code(tool)
        }

    async def _in_view(self, tools: Mapping[str, Tool], work: WorkContext) -> Sequence[str]:
        """In a steady order, with what was found last at the end: so the beginning can be cached."""
        if self._hides_all or self._beside_code:
            shown = work.toolbox.loaded(work.caller)
        else:
            deferred = await work.toolbox.deferred(work.caller)
            shown = [name for name in tools if name not in deferred]
        return [name for name in dict.fromkeys((*shown, *work.loaded)) if name in tools]

    async def _search(self, query: str, work: WorkContext) -> ToolReply:
        found = await work.toolbox.search(query, work.caller, _FOUND)
        tools = await self._among(work)
        hits = [tool for tool in found.tools if tool.name in tools]
        for tool in hits:
            work.loaded[tool.name] = None
        lines = [{"name": tool.name, "description": tool.model_description[:300]} for tool in hits]
        note = "call them by name" if lines else "nothing fits; try other words"
        return ToolReply(content={"tools": lines, "shown": f"{len(lines)} of {len(tools):,}", "note": note})
