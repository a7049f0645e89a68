"""Where words stand in a text, all of them in one pass; and whether a long run of some signs does.

Both say no fast: a rule is tried only where it could find something. What they say is what looking for each
word by itself would.
"""

import re
from collections.abc import Iterable
from functools import cached_property

from ahocorasick_rs import AhoCorasick, Implementation

_SURROGATES = re.compile("[\ud800-\udfff]")  # of broken text: the automaton reads none


class WordFinder:
    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(words))

    @cached_property
    def _automaton(self) -> AhoCorasick:
        return AhoCorasick(self.words, implementation=Implementation.DFA)

    def find(self, text: str) -> list[tuple[int, int]]:
        """The number of a word and its place, for each place of each word."""
        try:
            found = self._automaton.find_matches_as_indexes(text, overlapping=True)
        except UnicodeEncodeError:
            plain = _SURROGATES.sub("\ufffd", text)
            found = self._automaton.find_matches_as_indexes(plain, overlapping=True)
        return [(number, start) for number, start, _ in found]


class RunFinder:
    """Where `length` signs out of some, or more, stand in a row. What is not ASCII may be one of them."""

    def __init__(self, signs: str, length: int) -> None:
        self._table = bytes(1 if chr(one) in signs + "?" else 0 for one in range(256))
        self._run = bytes([1]) * length

    def find(self, text: str) -> list[tuple[int, int]]:
        """Where each of them begins and ends."""
        if len(text) < len(self._run):
            return []
        marks = text.encode("ascii", "replace").translate(self._table)
        runs: list[tuple[int, int]] = []
        start = marks.find(self._run)
        while start >= 0:
            end = marks.find(0, start)
            end = len(marks) if end < 0 else end
            runs.append((start, end))
            start = marks.find(self._run, end)
        return runs
