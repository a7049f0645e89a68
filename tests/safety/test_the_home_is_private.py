"""Everything that Dragoman makes in its home is for its owner alone, whatever the umask says."""

import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest

from cli.command_line import Command, running_service
from dragoman.catalog.search.vector_cache import VectorCache, key_of
from dragoman.cli.line_editor import _write_history
from patience import wait_until

SOURCE = Path(__file__).parents[2] / "src" / "dragoman"
# Files that people name, or that a tool writes for them: not of the home.
ELSEWHERE = {"cli/imports.py", "connections/native/confined_directory.py"}
MAKES = re.compile(r"\.mkdir\(|\.touch\(|\.write_text\(|\.write_bytes\(|O_CREAT|open\([^)]*\"[wax]")


def open_to_others(home: Path) -> list[str]:
    paths = [home, *home.rglob("*")]
    return [f"{path} {path.stat().st_mode:o}" for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.mark.slow
def test_nothing_in_the_home_of_a_running_service_is_open_to_others(dragoman: Command, home: Path) -> None:
    before = os.umask(0o000)
    try:
        with running_service():
            assert dragoman("keys", "add", "one").code == 0
            assert dragoman("tools", "search", "anything").code == 0
            VectorCache(home / "embeddings", "model").put([key_of("a")], np.eye(1, dtype=np.float32))
            _write_history(home / "chat_history")
            wait_until(lambda: (home / "server.json").exists())
            names = {path.name for path in home.rglob("*")}
            assert {"key", "token", "dragoman.db", "server.json", "server.lock", "chat_history"} <= names
            assert open_to_others(home) == []
    finally:
        os.umask(before)


def test_only_one_module_makes_files_of_the_home() -> None:
    """What is added elsewhere goes through `private_files`, or is none of the home and named here."""
    makers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if MAKES.search(path.read_text("utf-8"))
    }
    assert makers - {"private_files.py"} - ELSEWHERE == set()
