"""The flood at the doors of `bench/`, small, against a service that may open 200 files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import patient

pytestmark = pytest.mark.slow

DOORS = Path(__file__).parents[2] / "bench" / "doors.py"


@pytest.mark.fault
def test_more_half_requests_than_files_keep_nobody_out_and_are_closed() -> None:
    command = [sys.executable, str(DOORS), "--json", "--halves", "260", "--streams", "40", "--files", "200"]
    command += ["--head-seconds", "2", "--body-seconds", "3"]
    command += ["--margin", str(patient(5)), "--slowest", str(patient(1000))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(100), check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert [verdict for verdict in report["verdicts"] if not verdict["met"]] == [], report
