"""Text as search reads it: words split out of names, stop words left out, the rest cut to their stems.

Pure: knows no tool and no index.
"""

import re
from functools import lru_cache
from itertools import chain
from typing import Any

from snowballstemmer import english_stemmer  # pyright: ignore[reportMissingTypeStubs]

_RUN = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]")
_CLAUSE = re.compile(r"[.;?!\n]+(?=\s|$)|,?\s+(?:and then|then|and also|also)\s+|,\s+and\s+", re.IGNORECASE)
_LEAST_CLAUSE = 3  # terms: less is a turn of phrase, not a step
_KEY = re.compile(r"[\W_]+")
_STOP_WORDS_TEXT = (
    "a about above after again all also am an and any are aren as at be because been before being below"
    " between both but by can cannot could couldn d did didn do does doesn doing don down during each few"
    " for from further had has hasn have haven having he her here hers him his how i if in into is isn it"
    " its itself just ll m may me might more most must my myself no nor not now of off on once only or"
    " other our ours out over own please re s same shall she should so some such t than thank thanks that"
    " the their theirs them then there these they this those through to too under until up upon us ve very"
    " want wants was wasn we were what when where which while who whom whose why will with would you your"
    " yours need needs like help let tell know"
)
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


def parts(text: str) -> list[str]:
    """The words as they are written, in lower case; camelCase and snake_case are split.

    A word that was split comes whole as well: `GitHub` is git, hub and github; `s3` is s, 3 and s3.
    """
    return [*chain.from_iterable(map(_parts_of, _RUN.findall(text)))]


def terms(text: str) -> list[str]:
    """What the index compares: the stems of all words that carry meaning."""
    return [*chain.from_iterable(map(_terms_of, _RUN.findall(text)))]


@lru_cache(maxsize=50_000)
def _parts_of(run: str) -> tuple[str, ...]:
    pieces = [run] if run.islower() and run.isalpha() else _PART.findall(run)
    whole = [run] if len(pieces) > 1 else []
    return tuple(piece.lower() for piece in (*pieces, *whole))


@lru_cache(maxsize=50_000)
def _terms_of(run: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in _parts_of(run) if word not in _STOP_WORDS)


def is_stop_word(word: str) -> bool:
    """Whether the word, in lower case, is one that the index leaves out."""
    return word in _STOP_WORDS


def telling_words(text: str) -> list[str]:
    """The words by which one can judge whether a question means anything: no letters, no numbers."""
    words = dict.fromkeys(parts(text))
    return [word for word in words if len(word) > 1 and not word.isdecimal() and word not in _STOP_WORDS]


def clauses(text: str) -> list[str]:
    """The steps of a question that has more than one; otherwise nothing."""
    found = [clause for clause in _CLAUSE.split(text) if len(terms(clause)) >= _LEAST_CLAUSE]
    return found if len(found) > 1 else []


def likeness(one: str, other: str) -> float:
    """How many of their terms two texts share, between 0 and 1."""
    mine, theirs = {*terms(one)}, {*terms(other)}
    return 2 * len(mine & theirs) / (len(mine) + len(theirs)) if mine and theirs else 0.0


def name_key(name: str) -> str:
    """The same for every spelling of one name: `getTime`, `get_time`, `get time`."""
    return _KEY.sub("", name).lower()


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    stemmers: Any = english_stemmer
    return stemmers.EnglishStemmer().stemWord(word)  # one each: it keeps the word, and threads share us
