"""The command answers at once, teaches by examples, and says what was meant."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from command_line import Command

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
)
PATHS = [
    [],
    ["chat"],
    ["ask"],
    ["agents"],
    *(
        ["agents", name]
        for name in ("list", "show", "create", "update", "start", "stop", "remove", "assign", "unassign")
    ),
    ["runs"],
    *(["runs", name] for name in ("list", "show", "follow", "cancel")),
    ["questions"],
    *(["questions", name] for name in ("list", "answer")),
    ["models"],
    ["connectors"],
    *(
        ["connectors", name]
        for name in (
            "add",
            "list",
            "show",
            "update",
            "remove",
            "enable",
            "disable",
            "connect",
            "disconnect",
            "refresh",
        )
    ),
    ["import"],
    ["export"],
    ["discover"],
    ["tools"],
    *(["tools", name] for name in ("search", "list", "show", "enable", "disable", "accept", "set")),
    ["call"],
    ["code"],
    *(["code", name] for name in ("run", "guide")),
    ["results"],
    ["results", "show"],
    ["calls"],
    ["calls", "list"],
    ["events"],
    ["approvals"],
    *(["approvals", name] for name in ("list", "show", "answer", "allowed", "withdraw")),
    ["credentials"],
    *(["credentials", name] for name in ("list", "set", "remove", "authorize", "rotate")),
    ["threads"],
    *(["threads", name] for name in ("list", "create", "show", "remove", "set", "add", "disable", "tools")),
    ["preferences"],
    *(["preferences", name] for name in ("show", "set")),
    ["usage"],
    ["usage", "show"],
    ["rollout"],
    *(["rollout", name] for name in ("status", "set", "reset")),
    ["audit"],
    *(["audit", name] for name in ("list", "verify", "export")),
    ["workspaces"],
    *(["workspaces", name] for name in ("list", "add", "show", "update", "remove")),
    ["users"],
    *(["users", name] for name in ("list", "add", "show", "update", "remove")),
    ["keys"],
    *(["keys", name] for name in ("list", "add", "revoke")),
    ["whoami"],
    ["connect"],
    ["stdio"],
    ["token"],
    ["serve"],
    ["doctor"],
    ["version"],
]


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


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_help_that_says_something(path: list[str], dragoman: Command) -> None:
    outcome = dragoman(*path, "--help")
    assert outcome.code == 0
    assert "Usage: dragoman" in outcome.out
    assert outcome.err == ""
    if len(path) == 2 or path[:1] in (
        ["ask"],
        ["models"],
        ["call"],
        ["events"],
        ["whoami"],
        ["serve"],
        ["doctor"],
    ):
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
