"""Sources of an answer: what each call brought, under a name that the answer can cite as `[c1]`.

A tool may name its own (`_meta.contexts`, or `metadata.contexts` of its result) and link resources; if it
does neither, its result is the source.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from dragoman.agents.mentions import verbatim_spans
from dragoman.agents.offers import CitedContext, ToolReply, digest_of
from dragoman.agents.work_context import WorkContext
from dragoman.tool import ToolOutput

_EXCERPT = 400
_MOST = 20  # of one call
_REMOVED = re.compile(r"\n\n\([^()]* citations? [^()]* removed\.\)$", re.IGNORECASE)
_QUOTE_MARK = re.compile(r"(?m)^>|(?<=^ )>|(?<=^  )>|(?<=^   )>")
_CITED = re.compile(r"[ \t]*\[(c\d+(?:\s*[,;]\s*c\d+)*)\](?:\([^()\s]*\))?", re.IGNORECASE)


def contexts_of(output: ToolOutput, tool: str, work: WorkContext) -> tuple[CitedContext, ...]:
    """None for an agent that does not cite."""
    if not work.cites:
        return ()
    named = [*_named(output)]
    known = {uri for uri, _ in named if uri}
    linked = [one for one in _linked(output) if one[0] not in known]
    found = [*named, *linked] or [(None, _text(output.result))]
    contexts: list[CitedContext] = []
    for uri, excerpt in found[:_MOST]:
        contexts.append(
            CitedContext(
                id=work.numbers.next_id(),
                call=output.metadata.request_id,
                tool=tool,
                uri=uri,
                excerpt=_shortened(excerpt),
            )
        )
    return tuple(contexts)


def with_source(reply: ToolReply, tool: str, call: str, work: WorkContext) -> ToolReply:
    """A result that is its own source, as that of code: what it was made of stayed where it ran."""
    if not work.cites or not reply.ok:
        return reply
    excerpt = _shortened(_text(reply.content.get("result") or reply.content.get("printed")))
    context = CitedContext(id=work.numbers.next_id(), call=call, tool=tool, excerpt=excerpt)
    content = {"source": context.id, **reply.content}
    return replace(reply, content=content, contexts=(context,), digest=digest_of(reply.content))


def sources_of(outcome: Mapping[str, Any]) -> tuple[CitedContext, ...]:
    """Those that a run kept."""
    return tuple(CitedContext(**one) for one in outcome.get("contexts", ()))


def cited_in(answer: str) -> list[str]:
    """The ids that it cites, in their order; what stands in code cites nothing."""
    return [*dict.fromkeys(word for match in _citations(answer) for word in _ids(match))]


def with_known_citations(answer: str, known: Collection[str]) -> str:
    """The answer without citations that lead nowhere, which it says; those that stay are written alike."""
    removed = 0

    def written(ids: Sequence[str]) -> str:
        nonlocal removed
        kept = [word for word in ids if word in known]
        removed += len(ids) - len(kept)
        return f"[{', '.join(kept)}]" if kept else ""

    told = rewritten(answer, written)
    if not removed:
        return told
    what = "A citation that named no source was" if removed == 1 else f"{removed} citations of no source were"
    return f"{told.rstrip()}\n\n({what} removed.)"


def rewritten(answer: str, written: Callable[[Sequence[str]], str]) -> str:
    """The answer with each citation as `written` has its ids; where that is empty, it is gone."""
    told, end = "", 0
    for match in _citations(answer):
        space = match[0][: match[0].index("[")]
        mark = written(_ids(match))
        told += answer[end : match.start()] + (f"{space}{mark}" if mark else "")
        end = match.end()
    return told + answer[end:]


def _citations(answer: str) -> Iterator[re.Match[str]]:
    """What stands in code or in a URL is none; in a quoted line it is."""
    shown = verbatim_spans(_QUOTE_MARK.sub(" ", answer))
    starts = [start for start, _ in shown]
    for match in _CITED.finditer(answer):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or shown[before][1] <= match.start():
            yield match


def _ids(match: re.Match[str]) -> list[str]:
    return [*dict.fromkeys(word.strip().casefold() for word in re.split("[,;]", match[1]))]


def without_citations(answer: str) -> str:
    """Nor what is said of those that were removed."""
    return _REMOVED.sub("", _CITED.sub("", answer))


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
        facts |= {"code": told.code, "message": str(told.message or told.content)[:_LONGEST]}
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
