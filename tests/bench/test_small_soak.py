"""The soak of `bench/`, small: the same script in a process of its own, where only the hub uses memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import patient

pytestmark = pytest.mark.slow

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


@pytest.mark.fault
def test_two_thousand_calls_and_twenty_kills_lose_no_call_and_leave_nothing_behind() -> None:
    command = [sys.executable, str(SOAK), "--calls", "2000", "--kills", "20", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(100), check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert [verdict for verdict in report["verdicts"] if not verdict["met"]] == [], report
    assert "20 kills" in report["tables"][0]["title"]
