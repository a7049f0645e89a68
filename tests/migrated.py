"""Databases that are migrated already: a test that wants an empty one gets a copy.

Migrating takes most of the time in which a store opens. The tests of `store` and of the contract do without.
"""

import asyncio
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from dragoman.store import open_store


@cache
def _template() -> Path:
    """Made once in a process, and left to the system's folder for such files."""
    file = Path(tempfile.mkdtemp(prefix="dragoman-template-")) / "dragoman.db"
    migrate(f"sqlite:///{file}")
    return file


def migrate(url: str) -> None:
    """From a thread of its own: whoever asks may be in a running loop."""

    async def opened() -> None:
        async with open_store(url):
            pass

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, opened()).result()


def put_sqlite(file: Path) -> None:
    """An empty store at this place, unless there is one; as private as Dragoman makes it."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(_template(), file)
