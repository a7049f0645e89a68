"""One question put to one view of the index, by words, by meaning, or by both."""

from collections.abc import Mapping

import numpy as np

from dragoman.catalog.search.embedded_rows import EmbeddedQuery
from dragoman.catalog.search.fusion import (
    BM25,
    CANDIDATES,
    CLAUSE,
    HYBRID,
    SEMANTIC,
    Scores,
    best,
    fused,
    means_something,
)
from dragoman.catalog.search.index import SearchIndex
from dragoman.catalog.search.query import SearchQuery, Strategy
from dragoman.catalog.search.view import Rows, SearchView
from dragoman.catalog.search.words import clauses, stem, telling_words

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
