"""The command, run in this process, on a home that the test owns."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from command_line import Command, Outcome

from dragoman.cli.root import run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for variable in ("DRAGOMAN_URL", "DRAGOMAN_TOKEN", "DRAGOMAN_DATABASE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    # A command sets up logging for its process; here the process goes on.
    root = logging.getLogger()
    outlets, level = list(root.handlers), root.level
    yield tmp_path / "home"
    structlog.reset_defaults()
    root.handlers[:] = outlets
    root.setLevel(level)


@pytest.fixture
def dragoman(capsys: pytest.CaptureFixture[str]) -> Command:
    """One command line in this process."""

    def command(*words: str) -> Outcome:
        capsys.readouterr()
        code = run(list(words))
        seen = capsys.readouterr()
        return Outcome(code, seen.out, seen.err)

    return command
