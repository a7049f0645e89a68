"""BM25F over the four fields of a tool: which rows hold a term, and how much it says there.

Average lengths are constants, not those of the catalog: so a tool's weights depend on that tool
alone, and adding or removing one touches nothing else. It costs nothing in quality (bench/search.py).
"""

from array import array
from collections.abc import Iterable, Iterator
from math import log

from dragoman.catalog.search.documents import SearchDocument
from dragoman.catalog.search.words import terms

_SATURATION = 1.2  # BM25's k1
_LENGTH = 0.75  # BM25's b
# Field: how much one mention says, and how many terms the field usually has.
_FIELDS: dict[str, tuple[float, float]] = {
    "name": (3.0, 3.0),
    "description": (1.0, 15.0),
    "parameters": (1.0, 15.0),
    "connector": (1.0, 1.5),
}


class Postings:
    def __init__(self) -> None:
        self._entries: dict[str, tuple[array[int], array[float]]] = {}
        self._documents = 0

    def add(self, row: int, document: SearchDocument) -> None:
        self._documents += 1
        entries = self._entries
        for term, weight in _weights(document).items():
            entry = entries.get(term)
            if entry is None:
                entry = entries[term] = (array("i"), array("f"))
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

    def of(self, wanted: Iterable[str]) -> "Iterator[tuple[array[int], array[float], float]]":
        """For each term that occurs: the rows that hold it, how much it says in each, and how rare it is."""
        for term in set(wanted):
            if entry := self._entries.get(term):
                rows, weights = entry
                yield rows, weights, self._rarity(len(rows))

    def most(self, wanted: Iterable[str]) -> float:
        """No row scores as much: each term as telling as can be. One that occurs nowhere is the rarest."""
        entries = (self._entries.get(term) for term in set(wanted))
        return sum(self._rarity(len(entry[0]) if entry else 0) for entry in entries)

    def _rarity(self, rows: int) -> float:
        return log(1 + (self._documents - rows + 0.5) / (rows + 0.5))

    def scores(self, wanted: Iterable[str]) -> dict[int, float]:
        """The score of each row that holds a term."""
        found: dict[int, float] = {}
        for rows, weights, rarity in self.of(wanted):
            for row, weight in zip(rows, weights, strict=True):
                found[row] = found.get(row, 0.0) + rarity * weight
        return found


def _weights(document: SearchDocument) -> dict[str, float]:
    """How much each term says of the tool, between 0 and 1."""
    mentions: dict[str, float] = {}
    for field, (weight, usual) in _FIELDS.items():
        found = terms(getattr(document, field))
        mention = weight / (1 - _LENGTH + _LENGTH * len(found) / usual)
        for term in found:
            mentions[term] = mentions.get(term, 0.0) + mention
    return {term: amount / (_SATURATION + amount) for term, amount in mentions.items()}
