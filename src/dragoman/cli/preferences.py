"""`dragoman preferences …`: what a user chooses for themselves."""

from collections.abc import Mapping
from typing import Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.setting_options import any_of, settings_of, with_changes
from dragoman.cli.tables import new_table

app = typer.Typer(no_args_is_help=True, help="What your new threads start with, and limits of your own.")


@app.command("show")
def show(as_json: AsJson = False) -> None:
    """Show your preferences and the limits in force."""
    request(as_json, _show, "GET", path_of("preferences"))


@with_changes(app, "set", settings_of("people", "Preferences"))
def set_preferences(as_json: AsJson = False, *, given: dict[str, Any]) -> None:
    """Change what is given and keep the rest. A limit of your own is lower than what is allowed.

    \b
    dragoman preferences set --connector time --connector maps
    dragoman preferences set --limit max_connectors_per_thread=5 --limit calls_per_hour=200
    dragoman preferences set --unset connectors,limits.calls_per_hour
    """
    request(as_json, _show, "PATCH", path_of("preferences"), any_of(given))


def _show(screen: Screen, answer: Mapping[str, Any]) -> None:
    chosen = answer["connectors"]
    names = "all that you see" if chosen is None else ", ".join(chosen) or "none"
    if not answer["auto_load"]:
        names += " (but a new thread starts with none)"
    screen.text(f"connectors of a new thread: {names}")
    screen.text(f"time zone: {answer['time_zone'] or 'that of the browser, else where Dragoman runs'}")
    table = new_table("limit", "yours", "allowed", "in force")
    for name, value in answer["in_force"].items():
        own, above = answer["limits"][name], answer["above"][name]
        table.add_row(
            plain(name.replace("_", " ")),
            *("–" if one is None else f"{one:g}" for one in (own, above, value)),
        )
    screen.show(table)
