"""A clause as words with places, of which some have been used up by a value already.

Pure. What is used belongs to one parameter and is not read again for another.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from dragoman.agents.offline.grammar import DETERMINERS, FAR, PRONOUNS, ROLES, opening, word_set
from dragoman.agents.offline.values import Value, values_in
from dragoman.catalog.search.words import stem

_TOKEN = re.compile(r"[^\s,;!?()\"“”«»`\[\]{}]+|[,;!?()\[\]{}\"“”«»`]")
_BREAKS = frozenset(',;!?()[]{}"“”«»`')
_MOST = 400  # words of a clause that are looked at
_JOINS = word_set("that and or but then which who where because so if when while off away out up")
_CHAIN = re.compile(r"\s*(?:,|&|\band\b|\bor\b)\s*(?:\b(?:and|or)\b)?\s*(?:\bto\b)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        return self.text.lower()


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words behind a preposition, up to where the sentence breaks."""

    preposition: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Sentence:
    text: str
    values: list[Value] = field(default_factory=list[Value])
    words: list[Word] = field(default_factory=list[Word])
    _used: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @classmethod
    def of(cls, text: str) -> "Sentence":
        return cls(text, values_in(text), [*islice(_words(text), _MOST)])

    @property
    def verb(self) -> str:
        return opening(self.text)[0]

    def use(self, start: int, end: int) -> None:
        self._used.append((start, end))

    def is_used(self, start: int, end: int) -> bool:
        return any(start < stop and end > first for first, stop in self._used)

    def free_values(self) -> list[Value]:
        return [value for value in self.values if not self.is_used(value.start, value.end)]

    def before(self, place: int, count: int = 1) -> list[str]:
        """The words before a place, the nearest first."""
        found = [word.low for word in self.words if word.end <= place]
        return found[::-1][:count]

    def after(self, place: int, count: int = 1) -> list[str]:
        return [word.low for word in self.words if word.start >= place][:count]

    def preposition_of(self, value: Value) -> str:
        """What announces the value: the nearest preposition, over articles and other values of its list."""
        words = [word for word in self.words if word.end <= value.start]
        for word in reversed(words[-6:]):
            if word.low in ROLES:
                return word.low
            inside = any(other.start <= word.start < other.end for other in self.values)
            if not inside and word.low not in DETERMINERS and word.low not in ("and", "or", ",", "&"):
                return ""
        return ""

    def chain(self, value: Value) -> list[Value]:
        """The value and those of its kind that follow it in a list: `a, b and c`."""
        found = [value]
        for other in self.values:
            if other.start < found[-1].end or other.kind != value.kind:
                continue
            if not _CHAIN.fullmatch(self.text[found[-1].end : other.start]):
                break
            found.append(other)
        return found

    def run(self, place: int, stops: Sequence[str] = (), far: bool = False) -> tuple[str, int, int]:
        """Free text up to a break, something used, a stop word or (unless `far`) a preposition."""
        taken: list[Word] = []
        for word in self.words:
            if word.start < place:
                continue
            if self._ends(word, taken, stops, far) or (taken and not far and self._turns(word)):
                break
            taken.append(word)
        while taken and taken[0].low in DETERMINERS:
            taken.pop(0)
        while taken and (taken[-1].low in _JOINS | DETERMINERS or taken[-1].low in ROLES):
            taken.pop()
        if not taken:
            return "", place, place
        start, end = taken[0].start, taken[-1].end
        return self.text[start:end].strip(" .:"), start, end

    def phrases(self) -> Iterator[Phrase]:
        for word in self.words:
            if word.low in ROLES and word.low != "of" and not self.is_used(word.start, word.end):
                text, start, end = self.run(word.end, far=word.low in FAR)
                if text and text.lower() not in PRONOUNS:
                    yield Phrase(word.low, text, start, end)

    def residue(self, known: frozenset[str]) -> list[Phrase]:
        """Runs of words that nothing has used, without the verb, and without known words at their ends."""
        runs: list[list[Word]] = [[]]
        verb = self.verb
        for word in self.words:
            if word.text in _BREAKS or self.is_used(word.start, word.end) or word.low == verb:
                runs.append([])
                verb = "" if word.low == verb else verb
            else:
                runs[-1].append(word)
        found = [_trimmed(run, known) for run in runs]
        return [
            Phrase("", self.text[run[0].start : run[-1].end].strip(" .:"), run[0].start, run[-1].end)
            for run in found
            if run
        ]

    def _turns(self, word: Word) -> bool:
        """`written by`, `assigned to`: what follows says something else of the same thing."""
        after = self.after(word.end)
        return word.low.endswith(("ed", "en", "nt")) and bool(after) and after[0] in ROLES

    def _ends(self, word: Word, taken: list[Word], stops: Sequence[str], far: bool) -> bool:
        if word.text in _BREAKS or self.is_used(word.start, word.end):
            return True
        if taken and ((word.low in _JOINS and not far) or word.low in stops):
            return True
        return word.low in ROLES and word.low != "of" and not (far and taken)


def _words(text: str) -> Iterator[Word]:
    for found in _TOKEN.finditer(text):
        start, end = found.span()
        while end - start > 1 and text[end - 1] in ".:'’" and not text[end - 2].isspace():
            end -= 1
        while end - start > 1 and text[start] in "'‘":
            start += 1
        yield Word(text[start:end], start, end)
        if found.end() > end and text[end] in ".:":
            yield Word(",", end, end + 1)


_SMALL = (
    word_set(
        "please can could would you i we want need all is are there what which who how do does did and or"
        " of me up out there s new one ones also now then let lets whats what's that"
    )
    | DETERMINERS
    | PRONOUNS
    | frozenset(ROLES)
)


def _trimmed(run: list[Word], known: frozenset[str]) -> list[Word]:
    def is_small(word: Word) -> bool:
        return word.low in _SMALL or stem(word.low) in known

    while run and is_small(run[0]):
        run = run[1:]
    while run and is_small(run[-1]):
        run = run[:-1]
    return run
