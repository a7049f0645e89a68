"""What the rows of one index mean: two legs of static vectors, and an embedder's where the app has one.

Needs numpy, the extra `vectors`. Not for two threads at once, like the index that it belongs to.
"""

from dragoman.catalog.search.embedded_rows import EmbeddedRows
from dragoman.catalog.search.embeddings import Embeddings
from dragoman.catalog.search.fusion import Rows, Scores
from dragoman.catalog.search.vectors import WIDTH, VectorRows, WordVectors


class RowMeanings:
    """Static vectors are read in lower case: that a word begins a sentence says nothing of it."""

    def __init__(self, words: WordVectors, embeddings: Embeddings | None = None) -> None:
        self.words = words
        self.embedded = EmbeddedRows(embeddings) if embeddings else None
        self._descriptions = VectorRows(WIDTH)
        # Half the width says as much of connector and parameters, and spares a quarter of time and memory.
        self._parameters = VectorRows(WIDTH // 2)

    def add(self, row: int, description: str, parameters: str) -> None:
        self._descriptions.put(row, self.words.of(description.lower()))
        self._parameters.put(row, self.words.of(parameters.lower()))
        if self.embedded:
            self.embedded.add(row, description, parameters)

    def remove(self, row: int) -> None:
        """Its vectors stay until another takes the row: nobody asks for them."""
        if self.embedded:
            self.embedded.remove(row)

    def semantic(self, text: str, end: int) -> tuple[Scores, Scores]:
        """How near the text is to name and description of each row, and to its connector and parameters."""
        vector = self.words.of(text.lower())
        return self._descriptions.scores(vector, end), self._parameters.scores(vector, end)

    def semantic_of(self, text: str, rows: Rows) -> tuple[Scores, Scores]:
        """The same for a few rows."""
        vector = self.words.of(text.lower())
        return self._descriptions.some(vector, rows), self._parameters.some(vector, rows)
