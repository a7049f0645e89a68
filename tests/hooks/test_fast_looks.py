"""No rule is skipped for speed: what the fast look finds is what a slow one does, on any text."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from re import _parser as sre  # pyright: ignore
from typing import Any, cast

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


ENDED = [rule for place in ("results", "definitions") for rule in _rules(place).rules if rule.ends]
# What each of them may find, with a blank where anything may stand between its words.
SPOKEN = [
    st.from_regex(
        re.sub(r"\[\^\.\\n\]\{0,\d+\}", " ", rule.pattern.pattern).replace("\\b", ""), fullmatch=True
    )
    for rule in ENDED
]


@settings(deadline=None, max_examples=60)
@given(st.data(), TEXTS)
def test_a_rule_that_looks_no_further_than_the_sentence_finds_all_that_is_there(
    data: st.DataObject, text: str
) -> None:
    for rule, spoken in zip(ENDED, SPOKEN, strict=True):
        lower = f"{text} {data.draw(spoken)} {text}".lower()
        words = [(at, word) for word in rule.words for at in range(len(lower)) if lower.startswith(word, at)]
        every = [one.span() for one in rule.pattern.finditer(lower)]
        assert [one.span() for one in rule.matches(lower, [at for at, _ in words], frozenset())] == every
        for start, end in every:
            assert not set(rule.ends) & set(lower[start:end])
            assert any(start <= at and at + len(word) <= end for at, word in words), lower[start:end]


def test_all_that_is_none_of_a_tool_s_business_has_a_word_that_its_rule_looks_for() -> None:
    table = tomllib.loads(files("dragoman.hooks").joinpath("injection_patterns.toml").read_text("utf-8"))
    fragment = table["fragments"]["conversation"]
    rule = next(one for one in table["anywhere"] if "{conversation}" in one["patterns"][0])
    phrases = list(_spelled(sre.parse(fragment)))
    assert len(phrases) > 200
    assert [one for one in phrases if not any(word in one for word in rule["words"])] == []


def _spelled(tree: Any) -> Iterator[str]:
    """All that a pattern without endless repetition stands for."""
    if not len(tree):
        yield ""
        return
    kind, what = tree[0]
    match str(kind):
        case "LITERAL":
            heads = [chr(what)]
        case "IN":
            heads = [chr(letter) for _, letter in what]
        case "BRANCH":
            heads = [one for branch in what[1] for one in _spelled(branch)]
        case "SUBPATTERN":
            heads = list(_spelled(what[3]))
        case _:
            assert (str(kind), what[:2]) == ("MAX_REPEAT", (0, 1))
            heads = ["", *_spelled(what[2])]
    for rest in list(_spelled(tree[1:])):
        yield from (head + rest for head in heads)


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
