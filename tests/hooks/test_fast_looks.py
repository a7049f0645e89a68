"""No rule is skipped for speed: what the fast look finds is what a slow one does, on any text."""

import re
from collections.abc import Sequence
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.hooks.injection import _BASE64, _blobs, _Rules, _rules
from dragoman.hooks.patterns import _OURS
from dragoman.hooks.personal_data import _DIGITS, _NUMBERS
from dragoman.hooks.secrets import SecretScanner
from dragoman.secret_shapes import _START, SHAPES, shapes_in
from dragoman.word_finder import RunFinder, WordFinder
from hooks.poisoned import HARMLESS_OUTPUTS, POISONED, POISONED_OUTPUTS
from hooks.sensitive import NEAR_MISSES, SENSITIVE

DEFINITIONS = [one["description"] for one in POISONED]
CORPUS = [*(text for _, text in SENSITIVE), *NEAR_MISSES, *POISONED_OUTPUTS, *HARMLESS_OUTPUTS, *DEFINITIONS]
PIECES = st.one_of(
    st.text(max_size=30),
    st.text(alphabet="aA0+/=_- .()@:\n\ud800é用", max_size=80),
    st.sampled_from(CORPUS),
    st.tuples(st.sampled_from(CORPUS), st.integers(0, 200), st.integers(0, 200)).map(
        lambda cut: cut[0][cut[1] : cut[1] + cut[2]]
    ),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)


class SlowFinder:
    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def find(self, text: str) -> list[tuple[int, int]]:
        return [
            (number, place)
            for number, word in enumerate(self.words)
            for place in range(len(text))
            if text.startswith(word, place)
        ]


@settings(deadline=None, max_examples=150)
@given(TEXTS, st.lists(st.text(alphabet="abA_ é", min_size=1, max_size=3), min_size=1, max_size=8))
def test_every_place_of_every_word_is_found(text: str, words: list[str]) -> None:
    fast = WordFinder(words)
    assert sorted(fast.find(text)) == sorted(SlowFinder(fast.words).find(text))


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_every_rule_about_injections_is_tried_where_its_words_stand(text: str) -> None:
    lower = text.lower()
    for place in ("results", "definitions"):
        fast = _rules(place)
        slow = _Rules(fast.rules)
        slow.finder = cast("WordFinder", SlowFinder(fast.finder.words))
        found = [
            [(rule.what, match.span()) for rule, match in one.matches(lower, frozenset())]
            for one in (fast, slow)
        ]
        assert found[0] == found[1]


@settings(deadline=None, max_examples=150)
@given(TEXTS)
def test_every_shape_of_a_secret_is_found_without_looking_everywhere(text: str) -> None:
    found = {(match.start(), name) for match, name in shapes_in(text)}
    for shape in SHAPES:
        for match in re.finditer(f"{_START}(?:{shape.pattern})", text):
            is_inside = any(start <= match.start() for start, name in found if name == shape.name)
            assert is_inside, (shape.name, match.start())


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_runs_of_base64_and_of_digits_are_all_looked_at(text: str) -> None:
    assert [one.span() for one in _blobs(text)] == [one.span() for one in _BASE64.finditer(text)]
    numbers = [one.span() for start, end in _NUMBERS.find(text) for one in _DIGITS.finditer(text, start, end)]
    assert numbers == [one.span() for one in _DIGITS.finditer(text)]
    runs = [one.span() for one in re.finditer(r"[ab\x80-\U0010ffff?]{3,}", text)]
    assert RunFinder("ab", 3).find(text) == runs


def test_the_words_of_mcp_itself_hold_nothing_to_find() -> None:
    for word in _OURS:
        assert not SecretScanner().find(word)
        assert not _rules("results").finder.find(word)
