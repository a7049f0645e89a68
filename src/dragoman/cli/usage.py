"""`dragoman usage …`"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="What was used, and what may still be.")


@app.callback()
def usage() -> None:
    pass


@app.command("show")
def show(
    user: Annotated[
        str | None, typer.Option(help="Another user of the workspace, by id or name; for admins.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what was used in the current windows, the limits in force and who set each.

    \b
    dragoman usage show
    dragoman usage show --user ada --json
    """
    request(as_json, _show, "GET", path_of("usage"), user=user)


def _show(screen: Screen, answer: Mapping[str, Any]) -> None:
    hour, day = answer["calls_last_hour"], answer["calls_last_day"]
    screen.text(f"{answer['name']}: {hour:,} calls in the last hour, {day:,} in the last day")
    if limited := [use for use in answer["uses"] if use["limit"] is not None]:
        screen.show(_table(limited))
    else:
        screen.note("no limit is set")
    for key in answer["keys"]:
        screen.text(f"through the {'client' if key['is_client'] else 'key'} {key['name']} ({key['id']})")
        screen.show(_table(key["uses"]))


def _table(uses: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("what", "used", "limit", "set by", "starts anew", right=("used", "limit"))
    for use in uses:
        used, limit = use["used"], use["limit"]
        colour = "red" if used is not None and used >= limit else "green"
        table.add_row(
            plain(use["name"].replace("_", " ")),
            "" if used is None else f"[{colour}]{used:,g}[/]",
            f"{limit:,g}",
            plain(use["set_by"]),
            ago(use["resets_at"]),
        )
    return table
