"""`dragoman hooks …`: what looks at calls, results and lists."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.tables import new_table

app = typer.Typer(no_args_is_help=True, help="What looks at every call, result and list.")


@app.command("list")
def list_hooks(as_json: AsJson = False) -> None:
    """List the hooks that hold for your calls, and those that a rule can name.

    \b
    dragoman hooks list
    dragoman workspaces update NAME --hook secrets --hook "personal_data card iban"
    dragoman connectors update github --hook "urls *.github.com"

    The app's own stand in DRAGOMAN_HOOKS.
    """
    request(as_json, _show, "GET", path_of("hooks"))


@app.command("try")
def try_hook(
    rule: Annotated[str, typer.Argument(help="As it would stand in a setting: `secrets mask`.")],
    text: Annotated[str, typer.Argument(help="A result to look at; - reads it from standard input.")] = "-",
    as_json: AsJson = False,
) -> None:
    """Show what a rule would do to a result. Nothing is called, nothing is written.

    \b
    dragoman hooks try secrets "the password is Tamarind-311"
    cat answer.txt | dragoman hooks try "personal_data email"
    """
    body = {"rule": rule, "text": sys.stdin.read() if text == "-" else text}
    request(as_json, _tried, "POST", path_of("hooks", "try"), body)


def _show(screen: Screen, answer: Mapping[str, Any]) -> None:
    rules = [("the app", rule) for rule in answer["app"]] + [
        ("workspace", rule) for rule in answer["workspace"]
    ]
    if rules:
        table = new_table("rule", "set by")
        for whose, rule in rules:
            table.add_row(plain(rule), whose)
        screen.show(table)
    else:
        screen.note("no hook holds for your calls; a connector may have its own")
    table = new_table("hook", "what it does", "for example")
    for kind in answer["kinds"]:
        table.add_row(plain(kind["name"]), plain(kind["meaning"]), plain(kind["example"]))
    screen.show(table)


def _tried(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.text(answer["refused"] if answer["text"] is None else answer["text"])
    for line in answer["trail"] or ["nothing was found"]:
        screen.note(line)
