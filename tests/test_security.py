"""Every promise of SECURITY.md names the tests that attack it."""

import ast
import re
from pathlib import Path

import pytest

from parsed_source import tree

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text()
PROMISED, _, NOT_PROMISED = PAGE.partition("## What it does not promise")
PROMISES: dict[str, str] = dict(re.findall(r"^- \*\*(.+?)\*\*(.*(?:\n  .*)*)", PROMISED, re.MULTILINE))
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_there_are_many_promises_and_something_is_not_promised() -> None:
    assert len(PROMISES) > 25
    assert len(PROMISES) == PROMISED.count("\n- "), "a promise has a title"
    assert NOT_PROMISED.count("\n- ") > 3


@pytest.mark.parametrize("title", PROMISES)
def test_a_promise_names_tests_that_are_there(title: str) -> None:
    named = TEST.findall(PROMISES[title])
    assert named, "no test attacks it"
    for path, name in named:
        place = ROOT / path
        assert place.is_file(), path
        defined = {
            node.name
            for node in ast.iter_child_nodes(tree(place))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in defined, f"{path} has no {name}"


def test_whatever_else_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:tests|bench|src|docs)/[\w/.]+\.\w+)(?:::\w+)?`", PAGE)
    assert [path for path in named if not (ROOT / path).is_file()] == []
