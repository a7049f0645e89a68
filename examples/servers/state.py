"""What a sample knows, on disk: one JSON document that several processes may share. Knows no sample.

Every change reads, changes and replaces the whole file under a lock, so that a reader, and whoever starts
after a `kill -9`, sees either the document before or the document after. A file that does not exist yet
begins with a seed. No file is held open between two calls.
"""

import fcntl
import json
import os
from argparse import ArgumentParser
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Document = dict[str, Any]
DIRECTORY_VARIABLE = "DRAGOMAN_SAMPLES_DATA"


class State:
    def __init__(self, path: Path, seed: Callable[[], Document]) -> None:
        self._path = path
        self._seed = seed

    def read(self) -> Document:
        with self._locked():
            return self._load()

    @contextmanager
    def changing(self) -> Generator[Document]:
        """The document to change in place; kept when the block ends well, else as it was."""
        with self._locked():
            document = self._load()
            yield document
            self._save(document)

    @contextmanager
    def _locked(self) -> Generator[None]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A file of its own: the document itself is replaced at every change, and a lock would go with it.
        with open(f"{self._path}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _load(self) -> Document:
        if not self._path.exists():
            self._save(self._seed())
        return json.loads(self._path.read_text("utf-8"))

    def _save(self, document: Document) -> None:
        write_atomically(self._path, json.dumps(document, ensure_ascii=False, indent=1))


def write_atomically(path: Path, text: str) -> None:
    """The whole file or nothing, also for those who read it meanwhile. One writer at a time."""
    # Always the same name: what a killed writer leaves behind is overwritten by the next.
    temporary = path.with_name(f".{path.name}.new")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def add_data_option(parser: ArgumentParser) -> None:
    """`--data DIR`, or the environment's word for it."""
    given = os.environ.get(DIRECTORY_VARIABLE)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=Path(given) if given else None,
        required=not given,
        help=f"where its state is kept, made if it is missing (or ${DIRECTORY_VARIABLE})",
    )


def moment(text: str) -> datetime:
    """A date or a time, ISO 8601; without a zone it is UTC. `ValueError` names what is neither."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a date like 2026-03-04 nor a time like 2026-03-04T09:30:00Z"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def ago(minutes: float) -> str:
    """A time of a seed, relative to its making."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")


def weekday(number: int) -> str:
    """A date of a seed: 0 is this week's Monday, 6 its Sunday, 7 the next Monday, -3 last Friday."""
    today = datetime.now(UTC).date()
    return (today + timedelta(days=number - today.weekday())).isoformat()
