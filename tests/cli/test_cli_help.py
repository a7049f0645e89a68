"""The command answers at once, teaches by examples, and says what was meant."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from command_line import Command
from typer.main import get_command

from dragoman.cli.root import app

HEAVY = (
    "fastapi",
    "starlette",
    "mcp",
    "sqlalchemy",
    "aiohttp",
    "uvicorn",
    "anyio",
    "cryptography",
    "pydantic_ai",
    "readline",
    "structlog",
)


def every_path(command: Any, path: tuple[str, ...] = ()) -> Iterator[list[str]]:
    yield [*path]
    for name, one in getattr(command, "commands", {}).items():
        yield from every_path(one, (*path, name))


PATHS = list(every_path(get_command(app)))
GROUPS = [path for path in PATHS if any(one and one[:-1] == path for one in PATHS)]
# A person, or an MCP client, goes on speaking: there is no answer to print.
SPEAKING = (["chat"], ["demo"], ["cluster", "demo"], ["stdio"])


def test_no_help_imports_the_stack() -> None:
    program = f"""
import sys
from dragoman.cli.root import run
for path in {PATHS!r}:
    assert run([*path, "--help"]) == 0, path
heavy = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(f"imported: {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_first_level_is_listed_without_its_modules_and_in_their_words() -> None:
    program = """
import sys
from dragoman.cli.root import run
assert run(["--help"]) == 0
ours = {name for name in sys.modules if name.startswith("dragoman.")}
sys.exit(f"imported: {ours}" if ours != {"dragoman.cli", "dragoman.cli.root"} else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    root: Any = get_command(app)
    for name, command in root.commands.items():
        listed = root.get_command(None, name)
        assert (listed.name, listed.help) == (command.name, command.help.split("\n\n")[0])
        assert not any((command.hidden, command.deprecated, command.short_help)), name


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_help_that_says_something(path: list[str], dragoman: Command) -> None:
    outcome = dragoman(*path, "--help")
    assert outcome.code == 0
    assert "Usage: dragoman" in outcome.out
    assert outcome.err == ""
    if path not in SPEAKING and path not in GROUPS:
        assert "--json" in outcome.out


def test_help_teaches_with_examples(dragoman: Command) -> None:
    assert "dragoman connectors add time -- uvx mcp-server-time" in dragoman("--help").out
    assert "timezone=Europe/Rome" in dragoman("call", "--help").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["conectors", "list"], "connectors"),
        (["tools", "shwo", "x"], "show"),
        (["call"], "NAME"),
        (["call", "x", "--tmeout", "1"], "--timeout"),
        (["call", "x", "y"], "key=value"),
        (["call", "x", "--json-args", "{"], "JSON"),
        (["call", "x", "--json-args", "[]"], "object"),
        (["call", "x", "a=1", "--json-args", "{}"], "not both"),
        (["connectors", "add", "x", "--env", "canary", "--", "y"], "NAME=VALUE"),
        (["connectors", "add", "x", "--url", "http://x", "--bearer-env", "NO_SUCH_VARIABLE"], "not set"),
        (["serve", "--port", "many"], "integer"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(words: list[str], expected: str, dragoman: Command) -> None:
    outcome = dragoman(*words)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert expected.lower() in outcome.err.lower()
    assert "hint: dragoman" in outcome.err
    assert "canary" not in outcome.err


def test_the_version_is_told(dragoman: Command) -> None:
    assert dragoman("version").out == dragoman("--version").out == version("dragoman") + "\n"
    assert dragoman("version", "--json").value == {"version": version("dragoman")}
