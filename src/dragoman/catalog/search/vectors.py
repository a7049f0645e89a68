"""Meaning as vectors: the mean over a table of word pieces, no model to run, no network.

The table and its tokenizer are the two files inside the wheel of `wordllama` (MIT). They are read
directly: the package's own loader asks the network, and importing it would cost more than reading.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as tensors
from tokenizers import Tokenizer

from dragoman.errors import Internal

Vector = NDArray[np.float32]
WIDTH = 256
_BLOCK = 4096
_TABLE = "weights/l2_supercat_256.safetensors"
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"
_WORD_START = "▁"


class WordVectors:
    def __init__(self, table: NDArray[np.float16], tokenizer: Any) -> None:
        self._table = table
        self._tokenizer = tokenizer

    @classmethod
    def load(cls) -> "WordVectors":
        # The specification of a package is found without importing it.
        package = find_spec("wordllama")
        if package is None or package.origin is None:
            raise Internal("the package wordllama is missing", hint="install Dragoman again, completely")
        folder = Path(package.origin).parent
        tokenizer: Any = Tokenizer.from_file(str(folder / _PIECES))
        # It remembers whole texts, 40 MB of them, and no text comes twice.
        tokenizer.model._resize_cache(0)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        files: Any = tensors
        (table,) = files.load_file(str(folder / _TABLE)).values()
        return cls(table, tokenizer)

    def of(self, text: str) -> Vector:
        """A vector of length one; of length zero when there is nothing to read."""
        # One at a time: a batch starts threads of its own, which warn whenever a server is spawned.
        pieces = self._tokenizer.encode(text, add_special_tokens=False).ids
        if not pieces:
            return np.zeros(WIDTH, np.float32)
        return _unit(self._table[pieces].astype(np.float32).mean(axis=0))

    def knows(self, word: str) -> bool:
        """Whether the table has the whole word. Of other scripts it cannot be said, so they pass."""
        return not word.isascii() or self._tokenizer.token_to_id(_WORD_START + word) is not None


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

    def some(self, vector: Vector, rows: NDArray[np.intp]) -> Vector:
        """The same for these rows only."""
        wanted = _unit(vector[: self._width])
        found = np.empty(len(rows), np.float32)
        for number, block in enumerate(self._blocks):
            here = rows // _BLOCK == number
            found[here] = np.vecdot(block[rows[here] % _BLOCK], wanted)
        return found


def _unit(vector: Vector) -> Vector:
    return vector / np.float32(max(float(np.linalg.norm(vector)), 1e-9))
