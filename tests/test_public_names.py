"""What the package offers, pinned: a name that comes or goes is a decision."""

import subprocess
import sys

import dragoman
from dragoman import errors


def test_the_public_names_are_these() -> None:
    assert dragoman.__all__ == [
        "Annotations",
        "Caller",
        "ConnectorView",
        "DragomanError",
        "Hub",
        "NativeTool",
        "Settings",
        "Tool",
        "ToolCall",
        "ToolOutput",
    ]
    for name in dragoman.__all__:
        assert getattr(dragoman, name).__name__ == name


def test_importing_the_package_loads_nothing_else() -> None:
    heavy = "('dragoman.', 'pydantic', 'mcp')"
    code = f"import dragoman, sys; print([name for name in sys.modules if name.startswith({heavy})])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_every_error_has_a_code_of_its_own_and_stands_in_the_drawn_tree() -> None:
    found = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.DragomanError)
    ]
    assert len({error.code for error in found}) == len(found)
    assert errors.__doc__
    for error in found:
        assert error.__name__ in errors.__doc__
