"""`dragoman recipes …`: how jobs were done, for later runs of the same connector's agent."""

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.completion import names_of
from dragoman.cli.door import path_of
from dragoman.cli.runs import IdOrLatest, latest_run
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, Yes, note, request, request_removal, rows, session
from dragoman.cli.tables import new_card, new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    no_args_is_help=True, help="How jobs were done: examples for later runs of the same connector's agent."
)
Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="As `recipes list` shows it.",
        show_default=False,
        autocompletion=names_of("recipes"),
    ),
]
Question = Annotated[str | None, typer.Option(help="What was asked.", show_default=False)]
Text = Annotated[str | None, typer.Option(help="The steps; - reads them from stdin.", show_default=False)]


@app.command("list")
def list_recipes(
    connector: Annotated[
        str | None,
        typer.Option(help="Only those of its agent.", autocompletion=names_of("connectors")),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List your recipes and those that are shared in the workspace, newest first."""
    show = rows(_table, "recipes", "there is no recipe yet: dragoman recipes keep")
    request(as_json, show, "GET", path_of("recipes"), connector=connector)


@app.command("show")
def show(recipe: Id, as_json: AsJson = False) -> None:
    """Show what was asked, and the steps by which it was done."""
    request(as_json, _show, "GET", path_of("recipes", recipe))


@app.command("keep")
def keep(run: IdOrLatest = None, as_json: AsJson = False) -> None:
    """Keep how a run was done: the latest, or the one that you name.

    \b
    dragoman ask "@email check my latest emails"
    dragoman recipes keep

    One recipe for each connector's agent that did a part of it: the question, and of each call the tool with
    names and types of its arguments. No value, no result. An admin switches recipes on for the workspace:
    dragoman workspaces update NAME --recipes
    """
    with session(as_json) as (door, screen):
        answer = door.ask("POST", path_of("recipes"), {"run": run or latest_run(door)})
        if as_json:
            return screen.data(answer)
        for one in answer["recipes"]:
            _show(screen, one)
        return screen.note("change its words with: dragoman recipes edit")


@app.command("edit")
def edit(recipe: Id, question: Question = None, text: Text = None, as_json: AsJson = False) -> None:
    """Change what a recipe says. One that is shared is for admins to change.

    \b
    dragoman recipes edit recipe_4f… --question "Send somebody a mail"
    dragoman recipes edit recipe_4f… --text - < steps.txt
    """
    request(as_json, _show, "PATCH", path_of("recipes", recipe), _texts(question, text))


@app.command("share")
def share(recipe: Id, question: Question = None, text: Text = None, as_json: AsJson = False) -> None:
    """Share a text with everybody in the workspace who sees the connector. For admins.

    What is shared is this text; the recipe itself stays yours. Shared again, the text is replaced.

    \b
    dragoman recipes share recipe_4f… --text "1. search first  2. then send"
    """
    request(as_json, _show, "POST", path_of("recipes", recipe, "share"), _texts(question, text))


@app.command("delete")
def delete(recipe: Id, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a recipe for good. A text that was shared of it stays until an admin deletes that."""
    show, asked = note(f"{recipe} is deleted"), f"Delete {recipe}?"
    request_removal(as_json, show, path_of("recipes", recipe), asked, yes, name=recipe)


def _texts(question: str | None, text: str | None) -> dict[str, str]:
    given = {"question": question, "text": sys.stdin.read() if text == "-" else text}
    return {name: value for name, value in given.items() if value is not None}


def _show(screen: Screen, recipe: Mapping[str, Any]) -> None:
    card = new_card()
    whose = "the workspace's" if recipe["is_shared"] else "yours"
    card.add_row("recipe", f"[bold]{plain(recipe['id'])}[/] {whose}")
    card.add_row("connector", plain(recipe["connector"]))
    card.add_row("asked", plain(recipe["question"]))
    card.add_row("done", plain(recipe["text"]))
    if recipe["run"]:
        card.add_row("from", plain(recipe["run"]))
    screen.show(card)


def _table(recipes: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("recipe", "connector", "of", "asked", "changed")
    for one in recipes:
        table.add_row(
            f"[bold]{plain(one['id'])}[/]",
            plain(one["connector"]),
            "[dim]workspace[/]" if one["is_shared"] else "[dim]you[/]",
            plain(one["question"], 60),
            ago(one["updated_at"]),
        )
    return table
