"""BM25F over the four fields of a tool: which rows hold a term, and how much it says there.

Average lengths are constants, not those of the catalog: so a tool's weights depend on that tool
alone, and adding or removing one touches nothing else. It costs nothing in quality (bench/search.py).
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from math import log

import numpy as np
from numpy.typing import NDArray

from dragoman.catalog.search.documents import SearchDocument
from dragoman.catalog.search.words import terms

Scores = NDArray[np.float32]
_SATURATION = 1.2  # BM25's k1
_LENGTH = 0.75  # BM25's b
# Field: how much one mention says, and how many terms the field usually has.
_FIELDS: dict[str, tuple[float, float]] = {
    "name": (3.0, 3.0),
    "description": (1.0, 15.0),
    "parameters": (0.5, 15.0),
    "connector": (1.0, 1.5),
}


class Postings:
    def __init__(self) -> None:
        self._entries: dict[str, tuple[array[int], array[float]]] = {}
        self._documents = 0

    def add(self, row: int, document: SearchDocument) -> None:
        self._documents += 1
        for term, weight in _weights(document).items():
            entry = self._entries.get(term)
            if entry is None:
                entry = self._entries[term] = (array("i"), array("f"))
            entry[0].append(row)
            entry[1].append(weight)

    def remove(self, row: int, document: SearchDocument) -> None:
        """`document` is the one that was added."""
        self._documents -= 1
        for term in _weights(document):
            rows, weights = self._entries[term]
            # The last entry takes the place of the one that goes: order means nothing here.
            place = rows.index(row)
            rows[place], weights[place] = rows[-1], weights[-1]
            rows.pop()
            weights.pop()
            if not rows:
                del self._entries[term]

    def knows(self, term: str) -> bool:
        return term in self._entries

    def scores(self, wanted: Iterable[str], rows: int) -> Scores:
        """One score for each of the first `rows` rows; zero where no term occurs."""
        found = np.zeros(rows, np.float32)
        for term in set(wanted):
            if entry := self._entries.get(term):
                places = np.frombuffer(entry[0], np.int32)
                rarity = log(1 + (self._documents - len(places) + 0.5) / (len(places) + 0.5))
                found[places] += np.float32(rarity) * np.frombuffer(entry[1], np.float32)
        return found


def _weights(document: SearchDocument) -> dict[str, float]:
    """How much each term says of the tool, between 0 and 1."""
    mentions: dict[str, float] = {}
    for field, (weight, usual) in _FIELDS.items():
        found = terms(getattr(document, field))
        room = 1 - _LENGTH + _LENGTH * len(found) / usual
        for term, count in Counter(found).items():
            mentions[term] = mentions.get(term, 0.0) + weight * count / room
    return {term: amount / (_SATURATION + amount) for term, amount in mentions.items()}
