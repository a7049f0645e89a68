"""Which parts of a message are shown rather than said: code, quoted lines, URLs. Pure; knows no mention.

Code as in CommonMark: fences of backticks or tildes, to the end where nobody closes them, and spans between
two equal runs of backticks within a paragraph. A fence may be indented or stand in a list.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

Span = tuple[int, int]

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)?")
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:(`{3,})[^`]*|(~{3,}).*)$", re.DOTALL)
_QUOTE = re.compile(r" {0,3}>")
_RUN = re.compile(r"`+")
_URL = re.compile(
    r"(?<![a-z0-9])(?:[a-z][a-z0-9+.-]{0,30}://|www\.|mailto:)[^\s<>\"`\u3000-\u3003\u3008-\u3011\uff08-\uff0c]+",
    re.IGNORECASE,
)


def verbatim_spans(text: str) -> list[Span]:
    """In order, apart from each other."""
    shown: list[Span] = []
    spoken: list[Span] = []
    for start, end, is_shown in _blocks(text):
        if is_shown:
            shown.append((start, end))
        else:
            spoken.append((start, end))
    for start, end in spoken:
        shown += _code_spans(text, start, end)
        shown += [match.span() for match in _URL.finditer(text, start, end)]
    return _merged(shown)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Fences and quoted lines, which are shown, and the paragraphs between them."""
    fence, fence_start = "", 0
    paragraph = 0
    for match in _LINE.finditer(text):
        start, end = match.span()
        line = match.group().rstrip("\r\n")
        if fence:
            if _closes(line, fence):
                yield fence_start, end, True
                fence, paragraph = "", end
            continue
        opening = _FENCE.match(line)
        if opening is None and line.strip() and not _QUOTE.match(line):
            continue
        yield paragraph, start, False
        paragraph = end
        if opening is not None:
            fence, fence_start = opening[1] or opening[2], start
        elif line.strip():
            yield start, end, True
    if fence:
        yield fence_start, len(text), True
    else:
        yield paragraph, len(text), False


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and not mark.strip(fence[0])


def _code_spans(text: str, start: int, end: int) -> Iterator[Span]:
    """From each run of backticks to the next of its length; a run without one is a run of backticks."""
    runs = [match.span() for match in _RUN.finditer(text, start, end)]
    places: dict[int, list[int]] = defaultdict(list)
    for number, (first, last) in enumerate(runs):
        places[last - first].append(number)
    number = 0
    while number < len(runs):
        first, last = runs[number]
        alike = places[last - first]
        later = bisect_right(alike, number)
        if later < len(alike):
            number = alike[later]
            yield first, runs[number][1]
        number += 1


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return merged
