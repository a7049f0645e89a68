"""Overrides outlive what servers do: some steps of `bench/bundles.py`, whose whole is a thousand."""

import json
import subprocess
import sys
from pathlib import Path

from patience import patient

BUNDLES = Path(__file__).parents[2] / "bench" / "bundles.py"


def test_the_overrides_of_a_bundle_survive_refreshes_renames_and_tools_that_come_and_go() -> None:
    command = [sys.executable, str(BUNDLES), "--json", "--steps", "80", "--seed", "11"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(60), check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["steps"], report["kept"]) == (80, True)
    assert {"removed", "returned", "changed", "renamed"} <= {*report["kinds"]}
