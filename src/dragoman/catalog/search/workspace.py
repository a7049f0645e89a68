"""The index of one workspace, and the views of those who asked since the catalog last changed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dragoman.catalog.connector_tools import ListKey
from dragoman.catalog.search.index import SearchIndex
from dragoman.catalog.search.query import SearchHit, SearchQuery, SearchResults
from dragoman.catalog.search.ranking import Ranked, ranked_by_words
from dragoman.catalog.search.view import SearchView
from dragoman.scope import Caller, Way

if TYPE_CHECKING:
    from dragoman.catalog.search.embedded_rows import EmbeddedQuery
    from dragoman.catalog.search.embeddings import Vectors
    from dragoman.catalog.search.meaning import RowMeanings
    from dragoman.catalog.search.search import CatalogSnapshot
    from dragoman.catalog.search.vector_cache import Key

_MOST_VIEWS = 64
_Reading = tuple[Way, tuple[frozenset[str], ...], tuple[ListKey, ...]]


class WorkspaceSearch:
    """Not for two threads at once: `Search` has the lock. Without `meanings` words alone rank."""

    def __init__(self, meanings: "RowMeanings | None") -> None:
        self._meanings = meanings
        self._index = SearchIndex(meanings)
        self.to_embed: dict[Key, str] = {}
        """What the index has read and no embedder has seen; for `Search` to take."""
        self._views: dict[_Reading, SearchView] = {}
        self._version = -1

    def find(
        self,
        question: SearchQuery,
        moment: "CatalogSnapshot",
        caller: Caller,
        asked: "Mapping[str, Vectors] | None" = None,
    ) -> SearchResults:
        """`asked` are the question and its parts as an embedder's vectors, where it has some."""
        if self._meanings is None:
            question = replace(question, strategy="bm25")
        view = self._view(moment, caller)
        exact = self._exact(question, moment, view)
        embedded = self._embedded(question, view, asked)
        order = dict(self._ranked(question, view, embedded))
        # One with exactly this name comes first, whatever else is like it; of several, the likeliest.
        scores = {place: 1.0 for place in order if place in exact}
        scores |= dict.fromkeys(exact - scores.keys(), 1.0)
        scores |= {place: score for place, score in order.items() if place not in exact}
        hits = [SearchHit(view.tool_at(place), round(score, 4)) for place, score in scores.items()]
        by = embedded.name if embedded else None
        return SearchResults(question, tuple(hits[: question.limit]), len(view), by)

    def _embedded(
        self, question: SearchQuery, view: SearchView, asked: "Mapping[str, Vectors] | None"
    ) -> "EmbeddedQuery | None":
        rows = self._meanings.embedded if self._meanings else None
        if rows is None:
            return None
        self.to_embed |= rows.fill()
        return None if question.strategy == "bm25" else rows.query(asked, view.rows)

    def _ranked(self, question: SearchQuery, view: SearchView, embedded: "EmbeddedQuery | None") -> Ranked:
        if not len(view):
            return []
        if self._meanings is None or question.strategy == "bm25":
            return ranked_by_words(self._index, view, question)
        from dragoman.catalog.search.hybrid import ranked_by_meaning

        return ranked_by_meaning(self._index, self._meanings, view, question, embedded)

    def _exact(self, question: SearchQuery, moment: "CatalogSnapshot", view: SearchView) -> set[int]:
        if (named := moment.named) is None:
            return set(view.places_of(self._index.named(question.text)))
        places = view.places_of(self._index.named(named.original_name))
        return {place for place in places if view.tool_at(place).name == named.name}

    def _view(self, moment: "CatalogSnapshot", caller: Caller) -> SearchView:
        if moment.version != self._version:
            self._index.follow(moment.lists)
            self._views.clear()
            self._version = moment.version
        # Callers who read the same lists with the same rights share a view, whoever they are.
        key = (caller.way, caller.grants, tuple(moment.readable))
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            view = self._views[key] = self._index.view(moment.readable, caller)
        return view
