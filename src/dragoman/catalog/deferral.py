"""Which tools a model does not get before it asks for them. Pure."""

from collections.abc import Collection, Iterable, Sequence

from dragoman.catalog.catalog import ToolInfo
from dragoman.scope import Deferral


def deferred_tools(
    tools: Sequence[ToolInfo], default: Deferral, budget: int, loaded: Collection[str] = ()
) -> frozenset[str]:
    """By name. What is loaded is not; else the connector decides, and where it does not, the app.

    By `auto` nothing is deferred while all that is not deferred by its connector fits into the budget.
    """
    chosen = {info.tool.name for info in tools if info.connector.configuration.deferred}
    undecided = {info.tool.name for info in tools if info.connector.configuration.deferred is None}
    rest = (info for info in tools if info.tool.name not in chosen)
    if default == "always" or (default == "auto" and _exceed(rest, budget)):
        chosen |= undecided
    return frozenset(chosen.difference(loaded))


def _exceed(tools: Iterable[ToolInfo], budget: int) -> bool:
    """Counts no further than it has to: there may be many."""
    total = 0
    for info in tools:
        total += info.tokens
        if total > budget:
            return True
    return False
