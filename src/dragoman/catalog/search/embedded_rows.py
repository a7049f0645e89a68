"""An embedder's vectors for the rows of one index, beside the light ones. Of no use while one is missing.

For the light ones and these are different spaces: their scores cannot stand in one list.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from dragoman.catalog.search.embeddings import LONGEST, Embeddings, Vectors
from dragoman.catalog.search.fusion import Rows, Scores
from dragoman.catalog.search.vector_cache import Key, key_of
from dragoman.catalog.search.vectors import VectorRows

_Keys = tuple[Key, Key]
_AT_ONCE = 500


class EmbeddedRows:
    """Not for two threads at once, like the index that it belongs to."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._rows: tuple[VectorRows, VectorRows] | None = None
        self._waiting: dict[int, _Keys] = {}
        self._wanted: dict[Key, str] = {}
        self._finished = -1

    @property
    def name(self) -> str:
        return self._embeddings.name

    def add(self, row: int, description: str, parameters: str) -> None:
        texts = description[:LONGEST], parameters[:LONGEST]
        keys = key_of(texts[0]), key_of(texts[1])
        self._waiting[row] = keys
        self._wanted |= zip(keys, texts, strict=True)
        self._finished = -1

    def remove(self, row: int) -> None:
        self._waiting.pop(row, None)

    def fill(self) -> Mapping[Key, str]:
        """Puts in place what has been computed since; the texts that are new and still to be computed."""
        vectors, finished = self._embeddings.vectors, self._embeddings.finished
        if finished == self._finished:
            return {}
        self._finished = finished
        if self._rows is None and vectors.width:
            self._rows = VectorRows(vectors.width), VectorRows(vectors.width)
        computed = [row for row, keys in self._waiting.items() if all(key in vectors for key in keys)]
        with suppress(OSError, KeyError):  # somebody deleted the files: without them until the next start
            for start in range(0, len(computed), _AT_ONCE):
                self._place(computed[start : start + _AT_ONCE])
        wanted, self._wanted = self._wanted, {}
        return {key: text for key, text in wanted.items() if key not in vectors}

    def _place(self, rows: Sequence[int]) -> None:
        assert self._rows is not None
        for number, leg in enumerate(self._rows):
            found = self._embeddings.vectors.get([self._waiting[row][number] for row in rows])
            for row, vector in zip(rows, found, strict=True):
                leg.put(row, vector)
        for row in rows:
            del self._waiting[row]

    def query(self, asked: Mapping[str, Vectors] | None, rows: Sequence[int]) -> "EmbeddedQuery | None":
        """A question, for these rows; None while a vector is missing."""
        if asked is None or self._rows is None:
            return None
        if self._waiting and not self._waiting.keys().isdisjoint(rows):
            return None
        return EmbeddedQuery(self.name, asked, self._rows)


class EmbeddedQuery:
    """One question and its parts, as the embedder of this name understands them."""

    def __init__(self, name: str, asked: Mapping[str, Vectors], rows: tuple[VectorRows, VectorRows]) -> None:
        self.name = name
        self._asked = asked
        self._rows = rows

    def known(self, texts: Sequence[str]) -> list[str]:
        return [text for text in texts if text in self._asked]

    def semantic(self, text: str, rows: Rows) -> tuple[Scores, Scores]:
        """How near the text is to name and description of these rows, and to connector and parameters."""
        vector, end = self._asked[text], int(rows.max()) + 1
        descriptions, parameters = self._rows
        return descriptions.scores(vector, end)[rows], parameters.scores(vector, end)[rows]

    def semantic_of(self, text: str, rows: Rows) -> tuple[Scores, Scores]:
        """The same for a few rows."""
        descriptions, parameters = self._rows
        return descriptions.some(self._asked[text], rows), parameters.some(self._asked[text], rows)
