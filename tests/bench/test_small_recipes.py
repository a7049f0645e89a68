"""What a recipe saves, on one of the jobs of `bench/recipes.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import patient

pytestmark = pytest.mark.slow

RECIPES = Path(__file__).parents[2] / "bench" / "recipes.py"


def test_a_recipe_saves_a_third_of_the_requests_and_an_unhelpful_one_costs_none() -> None:
    command = [sys.executable, str(RECIPES), "--json", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(100), check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert [verdict for verdict in report["verdicts"] if not verdict["met"]] == [], report
