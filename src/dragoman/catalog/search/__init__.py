"""Finding the right tool among thousands: by a pattern, by words, by meaning, or by all of it."""

from dragoman.catalog.search.query import MOST_HITS as MOST_HITS
from dragoman.catalog.search.query import STRATEGIES as STRATEGIES
from dragoman.catalog.search.query import SearchHit as SearchHit
from dragoman.catalog.search.query import SearchQuery as SearchQuery
from dragoman.catalog.search.query import SearchResults as SearchResults
from dragoman.catalog.search.query import Strategy as Strategy
from dragoman.catalog.search.search import Search as Search
