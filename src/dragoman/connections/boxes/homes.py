"""The homes of boxes: one directory for each (connector, identity) that lasts, for a server's state and what
npx and uvx fetch. Files only; who may clear one is decided elsewhere.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dragoman.private_files import make_private_directory

BLOCK = 4096


@dataclass(frozen=True, slots=True)
class BoxHome:
    """`identity` is a digest: what it is made of may hold the id of a user."""

    path: Path
    connector: str
    identity: str
    bytes: int


class BoxHomes:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path_of(self, connector: str, identity: str) -> Path:
        return self._directory / connector / _digest(identity)

    def make(self, connector: str, identity: str) -> Path:
        """The home itself; `tmp` and the writes to package caches lie beside it."""
        folder = self.path_of(connector, identity)
        for name in ("home", "tmp"):
            make_private_directory(folder / name)
        return folder / "home"

    def list(self, connector: str) -> list[BoxHome]:
        """Those that there are, with what they hold on disk."""
        folder = self._directory / connector
        if not folder.is_dir():
            return []
        return [
            BoxHome(path, connector, path.name, disk_used(path))
            for path in sorted(folder.iterdir())
            if path.is_dir() and not path.is_symlink()
        ]

    def clear(self, connector: str) -> int:
        """Removes every home of a connector. How many bytes they held."""
        freed = sum(home.bytes for home in self.list(connector))
        _remove(self._directory / connector)
        return freed


def disk_used(folder: Path) -> int:
    """Bytes on disk of all files below, none less than a block: a disk has no end of names either. Links are
    not followed.
    """
    return sum(_sizes(folder))


def _sizes(folder: Path | str) -> Iterator[int]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            yield max(entry.stat(follow_symlinks=False).st_blocks * 512, BLOCK)
            is_folder = entry.is_dir(follow_symlinks=False)
        except OSError:
            continue
        if is_folder:
            yield from _sizes(entry.path)


def _remove(folder: Path) -> None:
    """A server may leave directories that even their owner may not enter; no link leads out of it."""

    def opened(function: object, path: str, _: object) -> None:
        with suppress(FileNotFoundError):  # what still ends beside us removes its own
            os.chmod(os.path.dirname(path), 0o700, follow_symlinks=True)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, onerror=opened)


def _digest(identity: str) -> str:
    return sha256(identity.encode()).hexdigest()[:16]
