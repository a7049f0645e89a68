"""Words are cut as the tokenizer cut them that the vectors were trained with; the numbers are its own."""

import numpy as np
import pytest

from dragoman.catalog.search.vectors import WordVectors


@pytest.fixture(scope="module")
def words() -> WordVectors:
    return WordVectors.load()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("list the issues of a repository", [1051, 278, 5626, 310, 263, 9810]),
        ("getTime", [679, 2481]),
        ("naïve Überweisung", [1055, 30085, 345, 12093, 13046, 686]),
        ("日本語 のテスト", [29871, 30325, 30346, 30968, 29871, 30199, 30572, 30255, 30279]),
        ("emoji 🎉 here", [953, 29877, 2397, 29871, 243, 162, 145, 140, 1244]),
        ("antidisestablishmentarianism", [3677, 333, 275, 342, 370, 1674, 358, 13956, 1608]),
        (
            "https://example.com/x?y=1",
            [2045, 597, 4773, 29889, 510, 29914, 29916, 29973, 29891, 29922, 29896],
        ),
        ("\x00odd", [29871, 3, 22861]),
        ("  spread \n  over\tlines ", [9677, 975, 3454]),
        ("", []),
    ],
)
def test_a_text_is_cut_into_the_pieces_of_the_table(words: WordVectors, text: str, pieces: list[int]) -> None:
    assert words._pieces.of(text) == pieces


def test_half_a_character_is_read_and_not_refused(words: WordVectors) -> None:
    assert np.isfinite(words.of("broken \ud83d text")).all()


def test_what_means_the_same_is_near(words: WordVectors) -> None:
    def likeness(one: str, other: str) -> float:
        return float(words.of(one) @ words.of(other))

    assert (
        likeness("send an email", "write a mail message")
        > likeness("send an email", "weather in Paris") + 0.2
    )
    assert likeness("", "anything") == 0
