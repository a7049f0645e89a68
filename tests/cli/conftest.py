"""The command, run in this process or as one of its own, on a home that the test owns."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from dragoman.cli.root import run
from servers.processes import stdio


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Outcome]


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


def raw(*options: str) -> list[str]:
    """The words after the name of a connector that make it the raw test server."""
    server = stdio()
    return [*options, "--", server["command"], *server["args"]]


def dragoman_process(*words: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dragoman", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@contextmanager
def running_service(*options: str) -> Generator[subprocess.Popen[str]]:
    """`dragoman serve` as a process, ready; its address is the first line of its output."""
    with dragoman_process("serve", "--port", "0", "--json", *options) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the service did not start: {process.stderr.read()}")  # type: ignore[union-attr]
            process.url = json.loads(line)["url"]  # type: ignore[attr-defined]
            yield process
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
