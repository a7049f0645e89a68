"""Processes of one installation: services and workers on one database, each with a home of its own.

Who starts one ends it: they are context managers. They can be killed, frozen, given another clock, another
host name and another pid namespace.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from patience import patient, wait_until

HERE = Path(__file__).parent
FAKETIME = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "faketime" / "libfaketime.so.1"
_UNSHARE = ("unshare", "--pid", "--uts", "--mount-proc", "--fork", "--kill-child", "--")


@cache
def can_unshare() -> bool:
    """Whether the kernel gives us pid and UTS namespaces of our own."""
    try:
        return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


class NodeProcess:
    """A program as a process. `words` come after the interpreter."""

    def __init__(
        self,
        folder: Path,
        words: Sequence[str],
        *,
        environment: dict[str, str] | None = None,
        clock: str | None = None,
        is_apart: bool = False,
        host: str | None = None,
    ) -> None:
        """`clock` is what libfaketime takes (`+60s`); `is_apart`: in a pid namespace of its own, where it may
        have another `host` name.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._words = [*(_UNSHARE if is_apart else ()), *_renamed(host), sys.executable, *words]
        self._environment = {**os.environ, **(environment or {})}
        if clock is not None:
            self._environment |= {"LD_PRELOAD": str(FAKETIME), "FAKETIME": clock}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with (self.folder / "output").open("wb") as output, (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self._words, env=self._environment, stdout=output, stderr=log, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    def kill(self) -> None:
        """`kill -9`, with all that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)

    def ended(self, within: float = 20) -> int:
        """The exit code."""
        return self.process.wait(patient(within))


class ServiceProcess(NodeProcess):
    """`dragoman serve` on a home of its own."""

    def __init__(
        self, home: Path, database: str | None = None, *, vital_patience: float | None = None, **options: Any
    ) -> None:
        words = [
            str(HERE / "service_program.py"),
            str(vital_patience or 30),
            "serve",
            "--port",
            "0",
            "--json",
        ]
        environment = {"DRAGOMAN_HOME": str(home), **options.pop("environment", {})}
        if database is not None:
            environment["DRAGOMAN_DATABASE_URL"] = database
        super().__init__(home, words, environment=environment, **options)

    def __enter__(self) -> Self:
        super().__enter__()
        wait_until(lambda: "\n" in self.output or self.process.poll() is not None, 30)
        assert self.process.poll() is None, self.log
        self.facts: dict[str, str] = json.loads(self.output)
        return self

    def get(self, path: str, token: str | None = None) -> tuple[int, Any]:
        """Status and JSON; 0 where nobody answers."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"{self.facts['url']}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=patient(10)) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read() or b"null")
        except OSError:
            return 0, None


def _renamed(host: str | None) -> tuple[str, ...]:
    return () if host is None else ("sh", "-c", f'hostname {host}; exec "$@"', "sh")
