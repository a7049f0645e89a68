"""An embedder's vectors on disk, each under the hash of its text: computed once, whoever needs it.

Two files that only grow: the hashes, and the vectors as half floats. Processes may share them. They can be
deleted at any time, which costs the computing.
"""

import fcntl
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dragoman.private_files import make_private_directory, open_private

Key = bytes
_KEY = 16
_MAGIC = b"drgmvec1"
_HEADER = 16
_MOST = 1_000_000  # texts; then it begins anew, since nobody knows which of them are still wanted


def key_of(text: str) -> Key:
    return blake2b(text.encode("utf-8", "replace"), digest_size=_KEY).digest()


class VectorCache:
    """For any thread. `folder` is made at the first writing."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        stem = folder / blake2b(name.encode(), digest_size=8).hexdigest()
        self._keys, self._vectors = stem.with_suffix(".keys"), stem.with_suffix(".vectors")
        self._lock_file = stem.with_suffix(".lock")
        self._lock = Lock()
        self._places: dict[Key, int] = {}
        self._width = 0
        self._file = -1

    @property
    def width(self) -> int:
        """How many numbers a vector has; 0 while there is none."""
        return self._width

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def get(self, keys: Sequence[Key]) -> NDArray[np.float32]:
        """A row for each. `KeyError` when one is not kept, `OSError` when the file is gone."""
        size = self._width * 2
        with self._lock, self._vectors.open("rb", buffering=0) as file:
            found = np.empty((len(keys), self._width), np.float16)
            for row, key in enumerate(keys):
                file.seek(self._places[key] * size)
                data = file.read(size)
                if len(data) < size:
                    raise KeyError(key)
                found[row] = np.frombuffer(data, np.float16)
        return found.astype(np.float32)

    def read(self) -> None:
        """Takes in what is on disk."""
        with self._lock:
            self._read()
            if len(self._places) > _MOST:
                with self._alone():
                    self._begin(self._width)

    def put(self, keys: Sequence[Key], vectors: NDArray[np.float32]) -> None:
        """All of the width of those before."""
        with self._lock, self._alone():
            self._read()
            if not self._width:
                self._begin(vectors.shape[1])
            count = len(self._places)
            new = {key: row for row, key in enumerate(keys) if key not in self._places}
            rows = vectors[[*new.values()]].astype(np.float16)
            # The hashes last: what a crash leaves half written is not found, and is written over.
            _write_at(self._vectors, count * self._width * 2, rows.tobytes())
            _write_at(self._keys, _HEADER + count * _KEY, b"".join(new))
            self._read()

    def _read(self) -> None:
        if not self._keys.exists() or not self._vectors.exists():
            self._forget()
            return
        with self._keys.open("rb") as file:
            if (number := os.fstat(file.fileno()).st_ino) != self._file:
                self._forget()
                header = file.read(_HEADER)
                if len(header) < _HEADER or not header.startswith(_MAGIC):
                    return
                self._file, self._width = number, int.from_bytes(header[8:12], "little")
            known = len(self._places)
            file.seek(_HEADER + known * _KEY)
            more = file.read()
        whole = min(known + len(more) // _KEY, self._vectors.stat().st_size // (self._width * 2))
        for place in range(known, whole):
            start = (place - known) * _KEY
            self._places[more[start : start + _KEY]] = place

    def _begin(self, width: int) -> None:
        for path in (self._keys, self._vectors):
            path.unlink(missing_ok=True)
        os.close(open_private(self._vectors))
        _write_at(self._keys, 0, _MAGIC + width.to_bytes(4, "little") + bytes(4))
        self._forget()
        self._read()

    def _forget(self) -> None:
        self._places = {}
        self._width, self._file = 0, -1

    @contextmanager
    def _alone(self) -> Generator[None]:
        make_private_directory(self._keys.parent)
        with open(open_private(self._lock_file), "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _write_at(path: Path, start: int, data: bytes) -> None:
    file = open_private(path)
    try:
        os.ftruncate(file, start)
        with os.fdopen(os.dup(file), "r+b") as stream:
            stream.seek(start)
            stream.write(data)
    finally:
        os.close(file)
