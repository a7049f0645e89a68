"""The command as a process of its own, and what came of a command line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from patience import patient
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


def raw(*options: str) -> list[str]:
    """The words after the name of a connector that make it the raw test server."""
    server = stdio()
    return [*options, "--sandbox", server["sandbox"], "--", server["command"], *server["args"]]


@contextmanager
def dragoman_process(*words: str, **options: Any) -> Generator[subprocess.Popen[str]]:
    """A command in a process of its own, gone with the block. Ctrl-C means what it means at a terminal."""
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has it ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@dataclass(frozen=True)
class Service:
    """`console` is the link that signs in once."""

    process: subprocess.Popen[str]
    url: str
    console: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self, number: signal.Signals = signal.SIGTERM, within: float = 10) -> int:
        """The exit code. `TimeoutExpired` when it takes longer."""
        os.kill(self.pid, number)
        return self.process.wait(patient(within))


@contextmanager
def running_service(*options: str) -> Generator[Service]:
    """`dragoman serve` as a process, ready; its address is the first line of its output."""
    with dragoman_process("serve", "--port", "0", "--json", *options) as process:
        try:
            line = output_of(process).readline()
            assert line, f"the service did not start: {errors_of(process).read()}"
            facts = json.loads(line)
            yield Service(process, facts["url"], facts["console"])
        finally:
            if process.poll() is None:
                process.kill()


def output_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def errors_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stderr is not None
    return process.stderr
