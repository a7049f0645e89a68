"""One question put to one view of the index, by words, by meaning, or by both."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dragoman.catalog.search.embedded_rows import EmbeddedQuery
from dragoman.catalog.search.index import SearchIndex
from dragoman.catalog.search.query import SearchQuery, Strategy
from dragoman.catalog.search.words import clauses, stem, telling_words
from dragoman.catalog.search.workspace import Rows, SearchView

Scores = NDArray[np.float32]
# Words, meaning of name and description, meaning of connector and parameters. Many tools have no
# parameters to speak of, so their leg counts least.
HYBRID = (0.4, 0.4, 0.2)
SEMANTIC = (0.0, 0.4, 0.2)
BM25 = (1.0, 0.0, 0.0)
CLAUSE = 0.5
"""What the best clause of a long question adds to the whole."""
CANDIDATES = 100
"""How many of the best are looked at again, clause by clause."""

# A question is answered when a sixth of its words occurs anywhere in the catalog; or else when half of
# them are words at all and a tool is near in meaning. Loose on purpose: refusing a real question costs
# more than answering a senseless one.
_ENOUGH_FOUND = 1 / 6
_ENOUGH_WORDS = 1 / 2
_NEAR = 0.3


def fused(legs: tuple[Scores | None, Scores | None, Scores | None], weights: tuple[float, ...]) -> Scores:
    """The weighted sum of the legs, each scaled to 0…1. A leg without weight may be absent."""
    weighted = [(leg, weight) for leg, weight in zip(legs, weights, strict=True) if leg is not None]
    total = np.zeros(len(weighted[0][0]), np.float32)
    for leg, weight in weighted:
        total += scaled(leg) * np.float32(weight / sum(weights))
    return total


def scaled(scores: Scores) -> Scores:
    low, high = float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))
    if high <= low:
        return np.zeros_like(scores)
    return (scores - np.float32(low)) / np.float32(high - low)


def best(scores: Scores, count: int) -> NDArray[np.intp]:
    """Places of the highest scores, the best first; equal ones in the order of the catalog."""
    places = np.arange(len(scores))
    if len(scores) > count:
        places = np.sort(np.argpartition(scores, -count)[-count:])
    return places[np.argsort(-scores[places], kind="stable")]


def means_something(found: float, known: float, nearest: float) -> bool:
    """`found` and `known` are shares of the question's words: in the catalog, and words at all."""
    return found >= _ENOUGH_FOUND or (known >= _ENOUGH_WORDS and nearest >= _NEAR)


Ranked = list[tuple[int, float]]
_WEIGHTS: Mapping[Strategy, tuple[float, float, float]] = {
    "hybrid": HYBRID,
    "bm25": BM25,
    "semantic": SEMANTIC,
}


def ranked(
    index: SearchIndex, view: SearchView, question: SearchQuery, meaning: EmbeddedQuery | None = None
) -> Ranked:
    """Places in the view with their scores, the best first; nothing when nothing fits.

    `meaning` is the question as an embedder understands it. Whether it means anything at all is still
    for the light vectors to say: each embedder has a nearness of its own.
    """
    if not len(view):
        return []
    if question.strategy == "bm25":
        scores = index.lexical(question.text)[view.rows]
        return [(place, score) for place, score in _listed(scores, question.limit) if score > 0]
    descriptions, parameters = index.semantic(question.text)
    descriptions, parameters = descriptions[view.rows], parameters[view.rows]
    nearest = max(float(descriptions.max()), float(parameters.max()))
    if not _is_answerable(index, question.text, nearest):
        return []
    if meaning:
        descriptions, parameters = meaning.semantic(question.text, view.rows)
    weights = _WEIGHTS[question.strategy]
    words = index.lexical(question.text) if weights[0] else None
    whole = fused((None if words is None else words[view.rows], descriptions, parameters), weights)
    steps = clauses(question.text)
    if meaning:
        steps = meaning.known(steps)
    if not steps:
        return _listed(whole, question.limit)
    places = best(whole, max(CANDIDATES, question.limit))
    near = meaning or index
    step = np.max([_clause(index, near, text, view.rows[places], weights) for text in steps], axis=0)
    combined = (whole[places] + CLAUSE * step) / (1 + CLAUSE)
    return [(int(places[place]), score) for place, score in _listed(combined, question.limit)]


def _clause(
    index: SearchIndex,
    near: SearchIndex | EmbeddedQuery,
    text: str,
    rows: Rows,
    weights: tuple[float, float, float],
) -> Scores:
    words = index.lexical(text)[rows] if weights[0] else None
    return fused((words, *near.semantic_of(text, rows)), weights)


def _is_answerable(index: SearchIndex, text: str, nearest: float) -> bool:
    words = telling_words(text)
    if not words:
        return False
    found = [index.postings.knows(stem(word)) for word in words]
    known = [here or index.words.knows(word) for here, word in zip(found, words, strict=True)]
    return means_something(sum(found) / len(words), sum(known) / len(words), nearest)


def _listed(scores: Scores, limit: int) -> Ranked:
    return [(int(place), float(scores[place])) for place in best(scores, limit)]
