"""ARCHITECTURE.md names files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

from parsed_source import tree

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
NAMED = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|md))(?:: ([A-Za-z_.]+))?`", PAGE)


def found(path: str) -> Path | None:
    places = (ROOT / "src/dragoman" / path, ROOT / path)
    return next((place for place in places if place.is_file()), None)


def test_the_page_names_many_files() -> None:
    assert len(NAMED) > 50


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_what_the_page_names_is_there(path: str, name: str) -> None:
    place = found(path)
    assert place is not None, f"{path} is not there"
    scope: ast.AST = tree(place) if place.suffix == ".py" else ast.Module([], [])
    for part in filter(None, name.split(".")):
        inner = {node.name: node for node in ast.iter_child_nodes(scope) if hasattr(node, "name")}  # type: ignore[attr-defined]
        assert part in inner, f"{path} has no {name}"
        scope = inner[part]
