"""Many tools, few tokens: `search_tools` finds them, and what was found is offered from then on."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.agents.catalog_offers import offer_of
from dragoman.agents.offers import Attempt, Offer, Told
from dragoman.agents.work import Work

_FOUND = 6
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "what the tool should do, in a few words"},
    },
    "required": ["query"],
}


class SearchOffers:
    """Fills `Offers`."""

    async def list(self, work: Work) -> Sequence[Offer]:
        tools = {tool.name: tool for tool in await work.toolbox.tools(work.caller)}
        found = [offer_of(tools[name], work) for name in work.loaded if name in tools]

        async def search(arguments: Mapping[str, Any], attempt: Attempt) -> Told:
            return await _search(str(arguments.get("query") or ""), work)

        description = (
            f"Finds tools among {len(tools):,} by what they do. What it finds can be called in the next step."
        )
        finder = Offer(name="search_tools", description=description, schema=_SCHEMA, perform=search)
        return [finder, *found]

    async def instructions(self, work: Work) -> str:
        return "Your tools are not listed: find those you need with search_tools, then call them."


async def _search(query: str, work: Work) -> Told:
    found = await work.toolbox.search(query, work.caller, _FOUND)
    for tool in found.tools:
        work.loaded[tool.name] = None
    lines = [{"name": tool.name, "description": tool.model_description[:300]} for tool in found.tools]
    note = "call them by name" if lines else "nothing fits; try other words"
    return Told(content={"tools": lines, "shown": f"{len(lines)} of {found.total:,}", "note": note})
