"""Who is meant by `@name` in a message. Pure: knows no agent beyond its name, no thread and no model.

Only known names count; e-mail addresses, URLs, paths, code and quoted lines never do. The text stays as it
was written. Every step is linear in the text: a message may have a megabyte.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import category, normalize

from dragoman.names import did_you_mean

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


_AT = re.compile("[@＠]")
# Scripts that put no space between words, and Hangul, whose particles cling to the name before them.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_FORBIDS = "@＠\\`"
_LOCAL_PART = frozenset(".+-%=&~#/'\"_")
_GOES_ON = re.compile(r"_*[^\W_]|[-./\\][^\W_]|[@＠]")
_WORD = re.compile(r"[^\W_](?:[\w.-]{0,80}[^\W_])?")


@dataclass(frozen=True, slots=True)
class Mention:
    """`name` as it is registered; `text[start:end]` is how it was written, with its `@`."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Routing:
    """Whom a message goes to. `unknown` is the `@word` that it begins with, where nobody has that name."""

    agents: tuple[str, ...]
    text: str
    suggestion: str | None = None
    unknown: str | None = None


def route(text: str, known: Collection[str]) -> Routing:
    """Agents in the order of their first mention, each once."""
    mentions = mentions_in(text, known)
    unknown = _unknown_at_start(text, mentions)
    return Routing(
        agents=tuple(dict.fromkeys(mention.name for mention in mentions)),
        text=text,
        suggestion=_suggestion(unknown, known) if unknown else None,
        unknown=unknown,
    )


def mentions_in(text: str, known: Collection[str]) -> tuple[Mention, ...]:
    """Every mention of a known name, in order; where one name begins another, the longest that fits."""
    names = _Names(known)
    found: list[Mention] = []
    for at in _open_signs(text):
        last = found[-1].end if found else 0
        if at >= last and _may_begin(text, at, last) and (mention := names.find(text, at)):
            found.append(mention)
    return tuple(found)


class _Names:
    """Known names, compared without regard to case and to how accents are composed."""

    def __init__(self, known: Collection[str]) -> None:
        self._by_key: dict[str, str] = {}
        lengths: set[int] = set()
        firsts: set[str] = set()
        for name in sorted(known):
            if not name:
                continue
            self._by_key.setdefault(_key(name), name)
            for form in (normalize("NFC", name), normalize("NFD", name)):
                lengths |= {len(form), len(form.casefold()), len(form.upper())}
                firsts.add(form.casefold()[0])
        self._exact = frozenset(known)
        self._firsts = frozenset(firsts)
        self._lengths: Sequence[int] = sorted(lengths, reverse=True)

    def find(self, text: str, at: int) -> Mention | None:
        start = at + 1
        if text[start : start + 1].casefold()[:1] not in self._firsts:
            return None
        for length in self._lengths:
            written = text[start : start + length]
            name = self._by_key.get(_key(written)) if len(written) == length else None
            if name is not None and not _continues(text, start + length):
                return Mention(written if written in self._exact else name, at, start + length)
        return None


def _key(name: str) -> str:
    if name.isascii():
        return name.lower()
    return normalize("NFC", normalize("NFD", name).casefold())


def _open_signs(text: str) -> Iterator[int]:
    """Where an at sign stands in what the person says, as against what is shown."""
    if not _AT.search(text):
        return
    spans = iter((*verbatim_spans(text), (len(text), len(text))))
    start, end = next(spans)
    for match in _AT.finditer(text):
        while match.start() >= end:
            start, end = next(spans)
        if match.start() < start:
            yield match.start()


def _may_begin(text: str, at: int, last: int) -> bool:
    """Whether what stands before the sign, back to the last mention, is no address, path or escape."""
    if at and text[at - 1] in _FORBIDS:
        return False
    if at and _UNSPACED.match(text[at - 1]):
        return True
    place = at - 1
    while place >= last and (text[place] in _LOCAL_PART or _is_mark(text[place])):
        place -= 1
    return place < last or not text[place].isalnum()


def _continues(text: str, end: int) -> bool:
    """Whether the word goes on where the name ends: `@mailer2`, `@mailer.com`, `@mailer/core`."""
    if end >= len(text):
        return False
    if _UNSPACED.match(text[end]) and not _UNSPACED.match(text[end - 1]):
        return False
    return _is_mark(text[end]) or _GOES_ON.match(text, end) is not None


def _is_mark(character: str) -> bool:
    return not character.isascii() and category(character).startswith("M")


def _unknown_at_start(text: str, mentions: Sequence[Mention]) -> str | None:
    at = len(text) - len(text.lstrip())
    if text[at : at + 1] not in ("@", "＠") or (mentions and mentions[0].start == at):
        return None
    word = _WORD.match(text, at + 1)
    # `@types/node` is a package and `@ann@example.social` an address: nobody is being called.
    if word is None or text[word.end() : word.end() + 1] in ("/", "@", "＠"):
        return None
    return word.group()


def _suggestion(word: str, known: Collection[str]) -> str | None:
    names = sorted(known)
    return did_you_mean(word, names) or did_you_mean(word.casefold(), names)
