"""Sources of an answer: what each call brought, under a name that the answer can cite as `[c1]`.

A tool may name its own (`_meta.contexts`) or link resources; otherwise its result is the source.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from dragoman.agents.offers import Context
from dragoman.agents.work import Work
from dragoman.tool import ToolOutput

_EXCERPT = 400
_MOST = 20  # of one call
_CITED = re.compile(r"[ \t]*\[(c\d+(?:\s*,\s*c\d+)*)\]")


def contexts_of(output: ToolOutput, tool: str, work: Work) -> tuple[Context, ...]:
    """None for an agent that does not cite."""
    if work.agent.kind != "connector":
        return ()
    found = list(_named(output)) or list(_linked(output)) or [(None, _text(output.result))]
    contexts: list[Context] = []
    for uri, excerpt in found[:_MOST]:
        work.cited += 1
        contexts.append(
            Context(
                id=f"c{work.cited}",
                call=output.metadata.request_id,
                tool=tool,
                uri=uri,
                excerpt=_shortened(excerpt),
            )
        )
    return tuple(contexts)


def with_known_citations(answer: str, known: Collection[str]) -> str:
    """The answer without citations that lead nowhere."""

    def resolved(match: re.Match[str]) -> str:
        ids = [word.strip() for word in match[1].split(",")]
        kept = [word for word in ids if word in known]
        space = match[0][: match[0].index("[")]
        return f"{space}[{', '.join(kept)}]" if kept else ""

    return _CITED.sub(resolved, answer)


def _named(output: ToolOutput) -> Iterator[tuple[str | None, str]]:
    given = output.meta.get("contexts")
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
