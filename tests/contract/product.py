"""The product as a stranger meets it: its command and its service, each a process of its own.

Knows no module of the package, so that nothing here changes when its inside is rebuilt.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import patient

LIMIT = patient(60)
NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def value(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Service:
    home: Path
    url: str
    token: str

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Reply:
        """As the operator, or with a key. An error is a reply like any other."""
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as response:
                return Reply(response.status, response.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Reply(refused.code, refused.read())

    def get(self, path: str, token: str | None = None) -> Any:
        """The value at a path that must be there."""
        reply = self.ask("GET", path, token=token)
        assert reply.status == 200, reply.text
        return reply.value


def environment(home: Path, variables: Mapping[str, str] = NO_VARIABLES) -> dict[str, str]:
    """Of a process of the product: nothing of this machine decides what it prints."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "TMPDIR") if name in os.environ}
    shown = {"LANG": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "100", "TERMINAL_WIDTH": "100"}
    # A folder that is there, and is nobody's: what a program keeps beside the home lands in it.
    home.mkdir(parents=True, exist_ok=True)
    return {**kept, **shown, "HOME": str(home), "DRAGOMAN_HOME": str(home), **variables}


def run_dragoman(
    home: Path, *words: str, variables: Mapping[str, str] = NO_VARIABLES
) -> subprocess.CompletedProcess[str]:
    """One command line, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words],
        env=environment(home, variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@contextmanager
def running_service(home: Path, variables: Mapping[str, str] = NO_VARIABLES) -> Generator[Service]:
    """`dragoman serve` as a process; stopped as an operator stops it, so that it closes what it opened."""
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", "serve", "--port", "0", "--json"],
        env=environment(home, variables),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the service did not start; its errors are above"
            yield Service(home, json.loads(line)["url"], run_dragoman(home, "token").stdout.strip())
            process.terminate()
            assert process.wait(LIMIT) == 0
        finally:
            process.kill()
