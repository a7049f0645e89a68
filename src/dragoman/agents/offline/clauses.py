"""A message as steps: split where a new verb begins, if what follows means something on its own.

Pure. What is quoted is never split.
"""

import re

from dragoman.agents.offline.grammar import starts_with_verb
from dragoman.agents.offline.values import values_in

_CUT = re.compile(
    r"(?:\s*[,;.]\s*|\s+)(?:and then|and also|then|afterwards|after that|and|also)\s+"
    r"|\s*[;\n]+\s*|[.!?]\s+|,\s+",
    re.IGNORECASE,
)
_MOST = 6


def clauses_of(text: str) -> list[tuple[int, int]]:
    """Places of the pieces, at least one. A piece that begins with no verb belongs to the one before it."""
    quoted = [
        (value.start, value.end) for value in values_in(text) if value.kind in ("quoted", "url", "path")
    ]
    found: list[tuple[int, int]] = []
    start = 0
    for cut in _CUT.finditer(text):
        if any(first < cut.end() and cut.start() < end for first, end in quoted):
            continue
        if text[start : cut.start()].strip() and _is_step(text[cut.end() : cut.end() + 400]):
            found.append((start, cut.start()))
            start = cut.end()
    return [*found, (start, len(text))] if len(found) < _MOST else [(0, len(text))]


def _is_step(rest: str) -> bool:
    return starts_with_verb(rest) and not re.match(r"\s*\S+\s*[:=]", rest)
