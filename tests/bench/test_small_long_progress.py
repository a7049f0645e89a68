"""The long call of `bench/`, short: longer than a client is left without a word, in both eras."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.mcp_endpoint.streams import SAID_EVERY
from patience import patient

pytestmark = pytest.mark.slow
LONG = Path(__file__).parents[2] / "bench" / "long_progress.py"


def test_a_client_hears_of_a_call_whose_server_says_nothing() -> None:
    command = [sys.executable, str(LONG), "--json", "--seconds", str(round(SAID_EVERY) + 2)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(60), check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    (table,) = report["tables"]
    heard = {(era, server): int(times) for era, server, _, times, _ in table["rows"]}
    assert len(heard) == 4
    assert min(heard.values()) >= 1, table
    assert report["verdicts"][0]["met"], report
