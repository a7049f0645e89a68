"""Sources of an answer: what each call brought, under a name that the answer can cite as `[c1]`.

A tool may name its own (`_meta.contexts`, or `metadata.contexts` of its result) and link resources; if it
does neither, its result is the source.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from dragoman.agents.offers import CitedContext, ToolReply
from dragoman.agents.work_context import WorkContext
from dragoman.tool import ToolOutput

_EXCERPT = 400
_MOST = 20  # of one call
_CITED = re.compile(r"[ \t]*\[(c\d+(?:\s*[,;]\s*c\d+)*)\](?:\([^()\s]*\))?", re.IGNORECASE)


def contexts_of(output: ToolOutput, tool: str, work: WorkContext) -> tuple[CitedContext, ...]:
    """None for an agent that does not cite."""
    if work.agent.kind != "connector":
        return ()
    named = [*_named(output)]
    known = {uri for uri, _ in named if uri}
    linked = [one for one in _linked(output) if one[0] not in known]
    found = [*named, *linked] or [(None, _text(output.result))]
    contexts: list[CitedContext] = []
    for uri, excerpt in found[:_MOST]:
        work.cited += 1
        contexts.append(
            CitedContext(
                id=f"c{work.cited}",
                call=output.metadata.request_id,
                tool=tool,
                uri=uri,
                excerpt=_shortened(excerpt),
            )
        )
    return tuple(contexts)


def last_number(contexts: Iterable[CitedContext]) -> int:
    """Of those so far: not all that were numbered need be there after an interruption."""
    return max((int(context.id[1:]) for context in contexts), default=0)


def with_known_citations(answer: str, known: Collection[str]) -> str:
    """The answer without citations that lead nowhere; those that stay are written alike."""

    def resolved(match: re.Match[str]) -> str:
        ids = dict.fromkeys(word.strip().casefold() for word in re.split("[,;]", match[1]))
        kept = [word for word in ids if word in known]
        space = match[0][: match[0].index("[")]
        return f"{space}[{', '.join(kept)}]" if kept else ""

    return _CITED.sub(resolved, answer)


def without_citations(answer: str) -> str:
    return _CITED.sub("", answer)


def _named(output: ToolOutput) -> Iterator[tuple[str | None, str]]:
    given = output.meta.get("contexts")
    if given is None:
        given = _table(_table(output.result).get("metadata")).get("contexts")
    if not isinstance(given, Sequence) or isinstance(given, str):
        return
    for one in cast("Sequence[Any]", given):
        if isinstance(one, str):
            yield None, one
        elif isinstance(one, Mapping):
            facts = cast("Mapping[str, Any]", one)
            uri = facts.get("uri") or facts.get("url")
            text = next((facts[key] for key in ("excerpt", "text", "title", "name") if facts.get(key)), "")
            yield (str(uri) if uri else None), str(text)


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _linked(output: ToolOutput) -> Iterator[tuple[str | None, str]]:
    for block in output.content:
        if block.get("type") == "resource_link":
            title = block.get("title") or block.get("description") or block.get("name") or ""
            yield str(block.get("uri", "")), str(title)
        elif block.get("type") == "resource" and isinstance(block.get("resource"), Mapping):
            resource = cast("Mapping[str, Any]", block["resource"])
            yield str(resource.get("uri", "")), str(resource.get("text") or resource.get("mimeType") or "")


def _text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else line[: _EXCERPT - 1] + "…"


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
