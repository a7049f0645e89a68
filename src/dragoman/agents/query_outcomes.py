"""What a connector's agent has to show beside its answer: plan, tools used, sources. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from dragoman.agents.offers import CitedContext, ToolReply

_LONGEST = 500


def outcome_of(
    plan: Sequence[Mapping[str, Any]], finished: Mapping[str, ToolReply], contexts: Iterable[CitedContext]
) -> dict[str, Any]:
    """`finished` by key in the order of the calls: kind and turn, then the id of the call."""
    calls = [(key, told) for key, told in finished.items() if key.startswith("t") and not told.is_refused]
    return {
        "plan": [*plan] or _plan_of(calls),
        "tools_used": [_used(told) for _, told in calls],
        "contexts": [asdict(context) for context in contexts],
    }


def all_failed(outcome: Mapping[str, Any]) -> bool:
    """Whether it called tools and not one of them worked."""
    used: Sequence[Mapping[str, Any]] = outcome.get("tools_used", ())
    return bool(used) and not any(one["ok"] for one in used)


def _used(told: ToolReply) -> dict[str, Any]:
    facts: dict[str, Any] = {"tool": told.tool, "ok": told.ok, "call": told.call_id}
    if not told.ok:
        content = told.content
        is_table = isinstance(content, Mapping)
        message = cast("Mapping[str, Any]", content).get("message") if is_table else content
        facts |= {"code": told.code, "message": str(message)[:_LONGEST]}
    return facts


def _plan_of(calls: Sequence[tuple[str, ToolReply]]) -> list[dict[str, Any]]:
    """Where the agent stated none: what it did, each turn after the one before."""
    turns = [key.partition(":")[0] for key, _ in calls]
    order = [*dict.fromkeys(turns)]
    steps: list[dict[str, Any]] = []
    for turn, (_, told) in zip(turns, calls, strict=True):
        before = order[order.index(turn) - 1] if order.index(turn) else None
        depends = [number for number, other in enumerate(turns, 1) if other == before]
        steps.append({"tool": told.tool, "reason": "", "depends_on": depends})
    return steps
