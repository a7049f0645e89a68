"""Files that are written whole, and for their owner alone: everything that Dragoman makes in its home."""

import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def make_private_directory(path: Path) -> None:
    """One that exists stays as it is."""
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)


def open_private(path: Path, flags: int = os.O_RDWR) -> int:
    """A descriptor of a file that is made where there is none."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """A lock that the kernel holds for this process: it ends with it. `OSError` when another has it."""
    file = open_private(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(file)


def write_whole(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """A reader sees the old content or the new one; a crash leaves one of them."""
    fresh = write_draft(path, data)
    try:
        fresh.chmod(mode)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def mode_of(path: Path) -> int:
    """Of a file that is there; a new one is for its owner alone."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else FILE_MODE


def write_draft(path: Path, data: bytes) -> Path:
    """A new file beside the place of another, on the disk before this returns."""
    fresh = path.with_name(f".{path.name}.{token_hex(8)}")
    with open(open_private(fresh, os.O_WRONLY | os.O_EXCL), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return fresh


def overwrite_private(path: Path, data: bytes) -> None:
    """A file that somebody named and may have made: what it is (a link, a device) it stays, for its owner."""
    with open(open_private(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fchmod(file.fileno(), FILE_MODE)
        file.write(data)
