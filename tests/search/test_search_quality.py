"""The figures of bench/search.py do not fall unseen, on the two smallest of the public sets."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from public_data import TOOL_SEARCH

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SMALL = [TOOL_SEARCH / "mcpproxy", TOOL_SEARCH / "restbench"]


def measured(*options: str) -> list[dict[str, Any]]:
    words = [sys.executable, str(ROOT / "bench" / "search.py"), *map(str, SMALL), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_right_tools_are_among_the_first() -> None:
    mean = next(row for row in measured() if row["set"] == "mean")
    assert mean["NDCG@10"] > 0.70
    assert mean["R@5"] > 0.70


def test_gibberish_is_refused_real_questions_are_not_and_names_come_first() -> None:
    for row in measured("--refusals"):
        assert row["gibberish_refused"] >= 0.95
        assert row["real_refused"] <= 0.03
        assert row["exact_name_first"] == 1.0
