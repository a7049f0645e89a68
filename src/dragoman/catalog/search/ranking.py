"""One question put to one view of the index by its words alone."""

from heapq import nsmallest

from dragoman.catalog.search.index import SearchIndex
from dragoman.catalog.search.query import SearchQuery
from dragoman.catalog.search.view import SearchView
from dragoman.catalog.search.words import terms

Ranked = list[tuple[int, float]]
"""Places in a view with their scores, the best first; nothing when nothing fits."""


def ranked_by_words(index: SearchIndex, view: SearchView, question: SearchQuery) -> Ranked:
    """Equal ones are in the order of the catalog."""
    scores = index.postings.scores(terms(question.spoken))
    found = [(place, scores[row]) for place, row in enumerate(view.rows) if row in scores]
    return nsmallest(question.limit, found, key=lambda one: -one[1])
