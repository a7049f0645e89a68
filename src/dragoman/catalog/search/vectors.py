"""Meaning as vectors: the mean over a table of word pieces, no model to run, no network.

The table and its pieces are in `word_vectors`, made by `scripts/word_vectors.py` from those of `wordllama`.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise
from math import sqrt
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
WIDTH = 256
_BLOCK = 4096
_DATA = Path(__file__).with_name("word_vectors")
_WORD_START = "▁"


class WordPieces:
    """Words cut into pieces of a vocabulary by byte-pair encoding, as SentencePiece does it.

    The pieces are in the order in which they were learned: of two neighbours that could be joined, those
    are whose piece comes first. A character that is no piece becomes its bytes.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._of_word = lru_cache(maxsize=32_768)(self._cut)

    def __contains__(self, piece: str) -> bool:
        return piece in self._ids

    def of(self, text: str) -> list[int]:
        return [*chain.from_iterable(map(self._of_word, text.split()))]

    def _cut(self, word: str) -> tuple[int, ...]:
        ids = self._ids
        if (whole := ids.get(_WORD_START + word)) is not None:  # all joining would end there
            return (whole,)
        parts = [
            part
            for letter in _WORD_START + word
            for part in ([letter] if letter in ids else [f"<0x{byte:02X}>" for byte in _bytes_of(letter)])
        ]
        while len(parts) > 1:
            joined = [ids.get(left + right, len(ids)) for left, right in pairwise(parts)]
            first = min(joined)
            if first == len(ids):
                break
            place = joined.index(first)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return tuple(ids[part] for part in parts)


class WordVectors:
    """`table` has whole numbers of one byte, and `scales` what each of its rows is to be multiplied by."""

    def __init__(self, table: NDArray[np.int8], scales: Vector, pieces: WordPieces) -> None:
        self._table = np.asarray(table)  # as mapped as before, and without what a `memmap` does at each look
        self._scales = scales
        self._pieces = pieces

    @classmethod
    def load(cls) -> Self:
        # Mapped: what is not asked for is not read, and processes share it.
        table: Any = np.load(_DATA / "vectors.npy", mmap_mode="r")
        pieces = (_DATA / "pieces.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
        return cls(table, np.load(_DATA / "scales.npy"), WordPieces(pieces))

    def of(self, text: str) -> Vector:
        """A vector of length one; of length zero when there is nothing to read."""
        pieces = np.array(self._pieces.of(text), np.intp)
        if not len(pieces):
            return np.zeros(WIDTH, np.float32)
        return _unit(self._scales.take(pieces) @ self._table.take(pieces, axis=0).astype(np.float32))

    def knows(self, word: str) -> bool:
        """Whether the table has the whole word. Of other scripts it cannot be said, so they pass."""
        return not word.isascii() or _WORD_START + word in self._pieces


class VectorRows:
    """One vector per row, in blocks: room for one more is never made by copying all.

    The table was trained so that the first numbers of a vector say most: `width` is how many are kept.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._blocks: list[Vector] = []

    def put(self, row: int, vector: Vector) -> None:
        while row >= len(self._blocks) * _BLOCK:
            self._blocks.append(np.zeros((_BLOCK, self._width), np.float32))
        self._blocks[row // _BLOCK][row % _BLOCK] = _unit(vector[: self._width])

    def scores(self, vector: Vector, rows: int) -> Vector:
        """The cosine of each of the first `rows` rows with the vector."""
        wanted = _unit(vector[: self._width])
        found = np.empty(rows, np.float32)
        for number, block in enumerate(self._blocks):
            part = found[number * _BLOCK : (number + 1) * _BLOCK]
            # A product per row stays on this thread; one of a matrix would wake a thread per core.
            np.vecdot(block[: len(part)], wanted, out=part)
        return found

    def some(self, vector: Vector, rows: NDArray[np.int64]) -> Vector:
        """The same for these rows only."""
        wanted = _unit(vector[: self._width])
        found = np.empty(len(rows), np.float32)
        for number, block in enumerate(self._blocks):
            here = rows // _BLOCK == number
            found[here] = np.vecdot(block[rows[here] % _BLOCK], wanted)
        return found


def _bytes_of(letter: str) -> bytes:
    return letter.encode("utf-8", "replace")


def _unit(vector: Vector) -> Vector:
    return vector / np.float32(max(sqrt(vector.dot(vector)), 1e-9))
