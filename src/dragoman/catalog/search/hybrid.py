"""One question put to one view of the index by meaning, or by words and meaning. Needs numpy."""

from collections.abc import Iterable

import numpy as np

from dragoman.catalog.search.embedded_rows import EmbeddedQuery
from dragoman.catalog.search.fusion import (
    CANDIDATES,
    CLAUSE,
    CONNECTOR,
    FINDER,
    FITTING,
    HYBRID,
    NEEDING,
    SEMANTIC,
    Rows,
    Scores,
    Weights,
    best,
    fused,
    means_something,
    trusted,
)
from dragoman.catalog.search.index import SearchIndex
from dragoman.catalog.search.meaning import RowMeanings
from dragoman.catalog.search.query import SearchQuery, Strategy
from dragoman.catalog.search.ranking import Ranked
from dragoman.catalog.search.view import SearchView
from dragoman.catalog.search.words import clauses, stem, telling_words, terms

WEIGHTS: dict[Strategy, Weights] = {"hybrid": HYBRID, "semantic": SEMANTIC}


def ranked_by_meaning(
    index: SearchIndex,
    meanings: RowMeanings,
    view: SearchView,
    question: SearchQuery,
    embedded: EmbeddedQuery | None = None,
) -> Ranked:
    """`embedded` is the question as an embedder understands it. Whether it means anything at all is still
    for the light vectors to say: each embedder has a nearness of its own.
    """
    rows, text = np.frombuffer(view.rows, np.int64), question.spoken
    descriptions, parameters = meanings.semantic(text, index.end)
    descriptions, parameters = descriptions[rows], parameters[rows]
    nearest = max(float(descriptions.max()), float(parameters.max()))
    if not _is_answerable(index, meanings, text, nearest):
        return []
    if embedded:
        descriptions, parameters = embedded.semantic(text, rows)
    weights = WEIGHTS[question.strategy]
    whole = _fused(index, text, rows, (descriptions, parameters), weights)
    steps = clauses(text)
    if embedded:
        steps = embedded.known(steps)
    if steps:
        places = best(whole, max(CANDIDATES, question.limit))
        near = embedded or meanings
        fits = np.max([_clause(index, near, step, rows[places], weights) for step in steps], axis=0)
        whole[places] += CLAUSE * fits
        whole /= 1 + CLAUSE
    _raise_connectors(view, whole)
    _raise_finders(index, rows, whole)
    return [(int(place), float(whole[place])) for place in best(whole, question.limit)]


def _raise_connectors(view: SearchView, scores: Scores) -> None:
    """A tool is worth a little more beside others that fit: a connector that has several is the one meant."""
    if len(view.sizes) < 2:
        return
    first = best(scores, FITTING)
    ahead = scores[first] - scores[first[-1]]
    if (total := float(ahead.sum())) > 0:
        worth = np.bincount(view.list_numbers(first), ahead, len(view.sizes)) / total
        scores += np.float32(CONNECTOR) * np.repeat(worth, view.sizes).astype(np.float32)
        scores /= np.float32(1 + CONNECTOR)


def _raise_finders(index: SearchIndex, rows: Rows, scores: Scores) -> None:
    """What finds the ids that the best tools want is worth more than its own words say."""
    wanted: dict[int, float] = {}
    for place in best(scores, NEEDING):
        for row, sureness in index.finders.of(int(rows[place])):
            wanted[row] = max(wanted.get(row, 0.0), sureness * float(scores[place]))
    if wanted:
        places = np.flatnonzero(np.isin(rows, [*wanted]))
        scores[places] += np.float32(FINDER) * np.array(
            [wanted[int(rows[place])] for place in places], np.float32
        )
        scores /= np.float32(1 + FINDER)


def _clause(
    index: SearchIndex,
    near: RowMeanings | EmbeddedQuery,
    text: str,
    rows: Rows,
    weights: Weights,
) -> Scores:
    return _fused(index, text, rows, near.semantic_of(text, rows), weights)


def _fused(
    index: SearchIndex, text: str, rows: Rows, meaning: tuple[Scores, Scores], weights: Weights
) -> Scores:
    if not weights[0]:
        return fused((None, *meaning), weights)
    wanted = terms(text)
    words = _lexical(index, wanted)[rows]
    share = float(words.max()) / (index.postings.most(wanted) or 1.0)
    return fused((words, *meaning), trusted(weights, share))


def _lexical(index: SearchIndex, wanted: Iterable[str]) -> Scores:
    """One score for each row; zero where no term occurs."""
    found = np.zeros(index.end, np.float32)
    for rows, weights, rarity in index.postings.of(wanted):
        found[np.frombuffer(rows, np.int32)] += np.float32(rarity) * np.frombuffer(weights, np.float32)
    return found


def _is_answerable(index: SearchIndex, meanings: RowMeanings, text: str, nearest: float) -> bool:
    words = telling_words(text)
    if not words:
        return False
    found = [index.postings.knows(stem(word)) for word in words]
    known = [here or meanings.words.knows(word) for here, word in zip(found, words, strict=True)]
    return means_something(sum(found) / len(words), sum(known) / len(words), nearest)
