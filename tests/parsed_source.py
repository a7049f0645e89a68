"""The package as syntax trees, parsed once in a process, for tests that read the source."""

import ast
from functools import cache
from pathlib import Path

import dragoman

PACKAGE = Path(dragoman.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())
