"""`dragoman cluster demo`: what it promises is what a person sees."""

import os
import re
import subprocess
import sys

import pytest

from patience import patient


@pytest.mark.slow
@pytest.mark.postgres
def test_a_killed_process_loses_nothing_and_everything_is_gone_afterwards() -> None:
    before = _servers()
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "cluster", "demo", "--once"],
        capture_output=True,
        text=True,
        timeout=patient(120),
        env={**os.environ, "COLUMNS": "120"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    killed = re.search(r"kill -9 (\d+)", done.stdout)
    assert killed
    served = re.findall(r"process (\d+)\n", done.stdout)
    assert len(served) == 3
    assert killed[1] in served
    assert re.search(r"took it over; [\d.]+ s after the kill it was done:", done.stdout)
    assert "A calm day" in done.stdout
    tables = re.findall(r" +reports +owner +(\w+)", done.stdout)
    assert len(tables) == 2
    assert tables[0] != tables[1], "another process holds its server now"
    assert _servers() == before


def _servers() -> set[str]:
    """Processes of a demonstration, by what was started."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return {line for line in listed.splitlines() if re.search(r"/dragoman-demo-\w+/", line)}
