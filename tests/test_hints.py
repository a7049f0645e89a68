"""A hint is written once, as a command, and every door says it in its own words."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_type_hints

import pytest

from dragoman.console.pages import linked
from dragoman.hints import COMMANDS, Words, first_page, worded
from dragoman.hub.hub import Hub
from parsed_source import FILES, PACKAGE, tree

SNAPSHOTS = Path(__file__).parent / "contract" / "snapshots"
# A file without the word, imports apart, has no hint and need not be parsed.
NAMED = re.compile(r"(?<!from )(?<!import )\bdragoman\b(?![.\w])")


def is_with_hints(file: Path) -> bool:
    module = file.relative_to(PACKAGE)
    return module.parts[0] != "cli" and module.name != "hints.py" and bool(NAMED.search(file.read_text()))


MODULES = [file for file in FILES if is_with_hints(file)]


def commands_in(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text, with a word for what is filled in, wherever a command is named."""
    nodes = [*ast.walk(tree(file))]
    prose = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if id(node) in prose or id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.Constant) else "value" for one in node.values]
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        # What is no hint: the purpose of the master key, the names of the store's locks, code to be pasted.
        is_name = file.parent.name == "store" or text == "dragoman secret 1"
        is_name |= file.name == "call_snippets.py"
        if re.search(r"\bdragoman [a-z]", text) and not is_name:
            yield node.lineno, text


def test_the_source_has_hints_that_name_commands() -> None:
    assert sum(len([*commands_in(file)]) for file in MODULES) > 50


COMMAND, PYTHON, REST = r"\bdragoman [a-z]| --[a-z]", r"\bhub\.[a-z]", r"/api/"
# The words of other doors, of which a door's form must have none.
OTHERS = {
    "command": f"{PYTHON}|{REST}",
    "python": f"{COMMAND}|{REST}",
    "rest": f"{COMMAND}|{PYTHON}",
    "plain": f"{COMMAND}|{PYTHON}|{REST}",
}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_hint_has_a_form_for_every_door_without_the_words_of_another(file: Path) -> None:
    for line, text in commands_in(file):
        for command in re.findall(r"`?dragoman [a-z].*", text):
            assert first_page(command) is not None, f"line {line}: hints.py has no such command"
        for words, others in OTHERS.items():
            told = worded(text, cast("Words", words)) or ""
            assert not re.search(others, told), f"line {line} as {words}: {told}"
        assert not re.search(OTHERS["plain"], linked(text).striptags()), f"line {line} in the console"


def test_no_hint_below_the_doors_is_written_in_the_words_of_one() -> None:
    doors = {"api", "web", "cli", "console", "mcp_endpoint"}
    for file in FILES:
        if file.relative_to(PACKAGE).parts[0] in doors or file.name == "hints.py":
            continue
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                text = ast.unparse(node.value)
                assert not re.search(rf"{REST}|[\"' ]hub\.[a-z]|\bREST\b", text), f"{file}: {text}"


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.command)
def test_what_a_command_is_called_elsewhere_exists(row: Any) -> None:
    assert row.plain
    if row.python:
        noun: Any = Hub
        path = re.match(r"hub\.([a-z_.]+)", row.python)
        assert path, row.python
        for part in path[1].split("."):
            member = getattr(noun, part)
            noun = get_type_hints(member.fget)["return"] if isinstance(member, property) else member
    if row.rest:
        method, address = row.rest.split()[:2]
        pattern = re.sub(r"[A-Z]{2,}|…", "{}", address.partition("?")[0])
        paths: dict[str, Any] = json.loads((SNAPSHOTS / "openapi.json").read_text())["paths"]
        served = {re.sub(r"\{\w+\}", "{}", path): verbs for path, verbs in paths.items()}
        served["/api/openapi.json"] = {"get": "the document itself"}
        assert method.lower() in served[pattern]


@pytest.mark.parametrize(
    ("hint", "python", "rest", "plain"),
    [
        (
            "enable it first: dragoman connectors enable raw",
            'enable it first: hub.connectors.enable("raw")',
            "enable it first: POST /api/connectors/raw/enable",
            "enable it first: enable the connector raw",
        ),
        (
            "`dragoman models` shows what can be used",
            "`hub.models.list()` shows what can be used",
            "`GET /api/models` shows what can be used",
            "the list of models shows what can be used",
        ),
        (
            "dragoman credentials set mail env:WHO auth",
            'hub.credentials.set("mail", {"env:WHO": "…", "auth": "…"})',
            'PUT /api/credentials/mail {"values": {"env:WHO": "…", "auth": "…"}}',
            "set env:WHO and auth for the connector mail",
        ),
        ("did you mean 'time'?",) * 4,
    ],
)
def test_a_hint_is_said_in_the_words_of_its_door(hint: str, python: str, rest: str, plain: str) -> None:
    assert worded(hint, "command") == hint
    assert (worded(hint, "python"), worded(hint, "rest"), worded(hint, "plain")) == (python, rest, plain)
