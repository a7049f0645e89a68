"""Who is meant by `@name` in a message. Pure: knows no agent beyond its name, no thread and no model.

Only known names count; e-mail addresses, URLs, paths, code and quoted lines never do. The text stays as it
was written. Every step is linear in the text: a message may have a megabyte.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import category, normalize

from dragoman.agents.quoted_text import verbatim_spans
from dragoman.names import did_you_mean

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
