"""The wheel, installed into empty environments of its own, as people install it.

`WHEEL_PYTHON` names another interpreter than that of the tests for them: scripts/pythons.
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import patient, wait_until

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("WHEEL_PYTHON") or sys.executable
_UV = str(Path(sys.executable).with_name("uv"))


def uvx(wheel: Path) -> list[str]:
    """Runs the command of a wheel that nobody has installed."""
    pinned = ["--python", PYTHON, "--constraints", str(ROOT / "requirements.lock")]
    return [_UV, "tool", "run", "-q", *pinned, "--from", str(wheel), "dragoman"]


def build_wheel(folder: Path) -> Path:
    """Through a source distribution, so that what is missing in that is missing here."""
    words = ["build", "-q", "--no-build-isolation", "--python", sys.executable, "-o", str(folder), str(ROOT)]
    subprocess.run([_UV, *words], check=True, timeout=patient(120))
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True, slots=True)
class Environment:
    """`python` is its interpreter, `home` what its commands keep."""

    python: Path
    home: Path
    extra: str

    @classmethod
    def make(cls, folder: Path, wheel: Path, extra: str = "") -> "Environment":
        """Nothing is in it but the wheel with the extra and what these need, in the versions of the lock."""
        subprocess.run([_UV, "venv", "-q", "--python", PYTHON, str(folder)], check=True)
        made = cls(folder / "bin" / "python", folder / "home", extra)
        wanted = f"dragoman{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
        pinned = ["--python", str(made.python), "-c", str(ROOT / "requirements.lock")]
        subprocess.run([_UV, "pip", "install", "-q", *pinned, wanted], check=True, timeout=patient(300))
        return made

    def variables(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
        return {**kept, "DRAGOMAN_HOME": str(self.home), "DRAGOMAN_MODEL": "offline", **more}

    def dragoman(self, *words: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python.with_name("dragoman")), *words],
            env=self.variables(**variables),
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(120),
        )

    def python_output(self, program: str, **variables: str) -> str:
        """What a program prints."""
        command = [str(self.python), "-c", program]
        done = subprocess.run(
            command,
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(120),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answer(self, *words: str) -> Any:
        """What a command prints with `--json`."""
        done = self.dragoman(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def serving(self, *runner: str, **variables: str) -> Generator[str]:
        """The address of its service; another `runner` than its own command may start it."""
        command = [*(runner or [str(self.python.with_name("dragoman"))]), "serve", "--port", "0"]
        where = self.home / "server.json"
        process = subprocess.Popen(
            command, env=self.variables(**variables), stderr=subprocess.PIPE, text=True
        )
        try:
            wait_until(lambda: where.exists() or process.poll() is not None, within=90)
            assert process.poll() is None, process.communicate()[1]
            yield json.loads(where.read_text())["url"]
        finally:
            process.terminate()
            process.communicate(timeout=patient(20))
