"""Finding the right tool among thousands: by a pattern, by words, by meaning, or by all of it."""

from dragoman.catalog.search.answers import MOST_HITS as MOST_HITS
from dragoman.catalog.search.answers import STRATEGIES as STRATEGIES
from dragoman.catalog.search.answers import Found as Found
from dragoman.catalog.search.answers import Hit as Hit
from dragoman.catalog.search.answers import Question as Question
from dragoman.catalog.search.answers import Strategy as Strategy
from dragoman.catalog.search.embedder import Embedder as Embedder
from dragoman.catalog.search.search import Search as Search
