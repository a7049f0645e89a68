"""No module of the package needs, while it is loaded, one that needs it."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from parsed_source import FILES, PACKAGE, tree


def loaded(body: list[ast.stmt]) -> Iterator[ast.ImportFrom]:
    """Imports that run when the module is loaded: not those in functions, nor those for types only."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try):
            yield from loaded(node.body)


def test_no_imports_run_in_a_circle() -> None:
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in FILES
    }
    needs: dict[str, set[str]] = {}
    for module, path in files.items():
        named = [
            (node.module, name.name)
            for node in loaded(tree(path).body)
            for name in node.names
            if node.module in files
        ]
        needs[module] = {
            inner if (inner := f"{outer}.{name}") in files else str(outer) for outer, name in named
        } - {module}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))
