"""The front of the library: what a program meets has a name in `dragoman`, and says what it is."""

import ast
import dataclasses
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import dragoman
from dragoman import errors
from dragoman.hub.hub import Hub

# Not for programs: who opens the hub calls it.
OWN = {"ConfigurationFiles.start"}


def functions_of(noun: type) -> Iterator[tuple[str, Any]]:
    for name in dir(noun):
        if name.startswith("_") or f"{noun.__name__}.{name}" in OWN:
            continue
        member = inspect.getattr_static(noun, name)
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if inspect.isfunction(function):
            yield f"{noun.__name__}.{name}", function


def hints_of(of: Any) -> dict[str, Any]:
    """With the names that a module imports for type checkers only."""
    named = {name: getattr(dragoman, name) for name in dragoman.__all__}
    return get_type_hints(of, localns=named)


def services() -> list[type]:
    """The hub and what its properties give."""
    found: list[type] = [Hub]
    for name, member in inspect.getmembers_static(Hub):
        if isinstance(member, property) and not name.startswith("_"):
            noun = hints_of(member.fget).get("return")
            if isinstance(noun, type) and noun.__module__.startswith("dragoman.hub."):
                found.append(noun)
    return found


def met_types() -> dict[type, str]:
    """Each type of ours that a public method takes or returns, and those in the fields of what it returns."""
    met: dict[type, str] = {}

    def walk(hint: Any, where: str) -> None:
        for part in get_args(hint):
            for one in part if isinstance(part, list) else [part]:
                walk(one, where)
        noun = get_origin(hint) or hint
        if not isinstance(noun, type) or not noun.__module__.startswith("dragoman") or noun in met:
            return
        met[noun] = where
        if dataclasses.is_dataclass(noun):
            for name, kind in hints_of(noun).items():
                if not name.startswith("_"):
                    walk(kind, f"{where}, {noun.__name__}.{name}")

    for noun in services():
        for where, function in functions_of(noun):
            for hint in hints_of(function).values():
                walk(hint, where)
    return met


def test_the_services_are_found() -> None:
    assert {"Connectors", "Tools", "Runs", "People"} <= {noun.__name__ for noun in services()}


def test_what_public_methods_take_and_return_is_exported() -> None:
    lost = [f"{noun.__name__}: {where}" for noun, where in met_types().items() if not is_exported(noun)]
    assert not lost


def is_exported(noun: type) -> bool:
    return noun.__name__ in dragoman.__all__ and getattr(dragoman, noun.__name__) is noun


def test_every_error_is_exported() -> None:
    faults = [
        noun for noun in vars(errors).values() if isinstance(noun, type) and issubclass(noun, Exception)
    ]
    assert len(faults) > 40
    assert [noun.__name__ for noun in faults if not is_exported(noun)] == []


def test_type_checkers_and_python_know_the_same_names() -> None:
    tree = ast.parse(Path(str(dragoman.__file__)).read_text())
    declared = {
        alias.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert sorted(declared) == dragoman.__all__
    for name, home in declared.items():
        assert getattr(dragoman, name) is getattr(import_module(str(home)), name)


@pytest.mark.slow
def test_importing_dragoman_its_hub_or_its_service_loads_no_model_client_sdk_database_or_door() -> None:
    program = """
import json, sys
import dragoman
alone = [name for name in sys.modules if name.startswith(("dragoman.", "pydantic"))]
from dragoman import Hub
dear = ("pydantic_ai", "numpy", "openai", "mcp", "mcp_types", "sqlalchemy", "fastapi", "aiohttp", "joserfc")
heavy = [name for name in dear if name in sys.modules]
import dragoman.server  # a service that nobody has asked for a page, for MCP or for more than calls
heavy += [name for name in (*dear, "jinja2", "markdown_it") if name in sys.modules]
print(json.dumps([alone, heavy]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], []]


def test_every_public_method_says_what_it_does() -> None:
    silent = [where for noun in services() for where, function in functions_of(noun) if not function.__doc__]
    assert silent == []


def test_every_exported_class_says_what_it_is() -> None:
    said = {name: str(vars(getattr(dragoman, name)).get("__doc__") or "") for name in dragoman.__all__}
    # A dataclass that says nothing is given its signature.
    assert [name for name, text in said.items() if not text or text.startswith(f"{name}(")] == []
