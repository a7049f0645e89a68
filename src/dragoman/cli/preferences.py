"""`dragoman preferences …`: what a user chooses for themselves."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.tables import new_table

app = typer.Typer(no_args_is_help=True, help="What your new threads start with, and limits of your own.")

_HELP = "Lower than what is allowed; none takes your own away."
Limit = Annotated[str | None, typer.Option(help=_HELP, metavar="NUMBER")]


@app.command("show")
def show(as_json: AsJson = False) -> None:
    """Show your preferences and the limits in force."""
    request(as_json, _show, "GET", path_of("preferences"))


@app.command("set")
def set_preferences(
    connector: Annotated[
        list[str] | None, typer.Option(help="Of a new thread; give it several times.", show_default=False)
    ] = None,
    all_connectors: Annotated[
        bool, typer.Option("--all-connectors", help="A new thread has all that you see.")
    ] = False,
    auto_load: Annotated[
        bool | None,
        typer.Option("--auto-load/--no-auto-load", help="A new thread starts with them, or with none."),
    ] = None,
    max_connectors_per_thread: Limit = None,
    calls_per_hour: Limit = None,
    calls_per_minute: Limit = None,
    tokens_per_day: Limit = None,
    cost_per_day: Limit = None,
    max_concurrency: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Change what is given and keep the rest.

    \b
    dragoman preferences set --connector time --connector maps
    dragoman preferences set --max-connectors-per-thread 5 --calls-per-hour 200
    dragoman preferences set --calls-per-hour none
    """
    given = {
        "max_connectors_per_thread": max_connectors_per_thread,
        "calls_per_hour": calls_per_hour,
        "calls_per_minute": calls_per_minute,
        "tokens_per_day": tokens_per_day,
        "cost_per_day": cost_per_day,
        "max_concurrency": max_concurrency,
    }
    limits = {name: _number(name, word) for name, word in given.items() if word is not None}
    changes: dict[str, Any] = {"limits": limits} if limits else {}
    if connector and all_connectors:
        raise typer.BadParameter("give --connector or --all-connectors, not both")
    if connector or all_connectors:
        changes["connectors"] = connector or None
    if auto_load is not None:
        changes["auto_load"] = auto_load
    if not changes:
        raise typer.BadParameter("say what to change")
    request(as_json, _show, "PATCH", path_of("preferences"), changes)


def _number(name: str, word: str) -> float | int | None:
    if word == "none":
        return None
    try:
        return float(word) if name == "cost_per_day" else int(word)
    except ValueError:
        option = "--" + name.replace("_", "-")
        raise typer.BadParameter("give a number, or none", param_hint=option) from None


def _show(screen: Screen, answer: Mapping[str, Any]) -> None:
    chosen = answer["connectors"]
    names = "all that you see" if chosen is None else ", ".join(chosen) or "none"
    if not answer["auto_load"]:
        names += " (but a new thread starts with none)"
    screen.text(f"connectors of a new thread: {names}")
    table = new_table("limit", "yours", "allowed", "in force")
    for name, value in answer["in_force"].items():
        own, above = answer["limits"][name], answer["above"][name]
        table.add_row(
            plain(name.replace("_", " ")),
            *("–" if one is None else f"{one:g}" for one in (own, above, value)),
        )
    screen.show(table)
