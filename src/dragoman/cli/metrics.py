"""`dragoman metrics …`"""

import csv
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, milliseconds, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="Numbers over time: calls, errors, latency, tokens and cost.")
_RIGHT = ("calls", "errors", "p50", "p95", "tokens", "cost", "reconnects")


@app.callback()
def metrics() -> None:
    pass


@app.command("show")
def show(
    last: Annotated[str, typer.Option(help="The time up to now: 1h, 24h, 7d or 30d.")] = "24h",
    by: Annotated[
        str | None, typer.Option(help="Split by connector, tool, agent, user, client or model.")
    ] = None,
    connector: Annotated[str | None, typer.Option(help="Of this connector only.")] = None,
    tool: Annotated[str | None, typer.Option(help="Of this tool only.")] = None,
    agent: Annotated[str | None, typer.Option(help="Of this agent only.")] = None,
    user: Annotated[str | None, typer.Option(help="Of this user, by id or name; for admins.")] = None,
    client: Annotated[str | None, typer.Option(help="By way of: direct, agent, code or mcp.")] = None,
    model: Annotated[str | None, typer.Option(help="Of this model only.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Every point as CSV.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was called, how it went and what it cost. Admins see the whole workspace.

    \b
    dragoman metrics show --last 7d --by connector
    dragoman metrics show --connector github --csv > github.csv
    """
    told = _csv if as_csv and not as_json else _show
    request(
        as_json,
        told,
        "GET",
        path_of("metrics"),
        last=last,
        split=by,
        connector=connector,
        tool=tool,
        agent=agent,
        user=user,
        client=client,
        model=model,
    )


def _show(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.show(_table(answer))


def _table(answer: Mapping[str, Any]) -> "Table":
    table = new_table(answer["split"] or f"last {answer['last']}", *_RIGHT, right=_RIGHT)
    for group in answer["groups"]:
        table.add_row(plain(group["label"]), *_cells(group["numbers"]))
    table.add_row("[bold]all[/]", *_cells(answer["total"]))
    if not answer["groups"]:
        table.add_row("[dim]before[/]", *_cells(answer["before"]))
    return table


def _cells(numbers: Mapping[str, Any]) -> list[str]:
    return [
        f"{numbers['calls']:,}",
        f"[red]{numbers['errors']:,}[/]" if numbers["errors"] else "0",
        milliseconds(numbers["p50_ms"]),
        milliseconds(numbers["p95_ms"]),
        f"{numbers['input_tokens'] + numbers['output_tokens']:,}",
        _cost(numbers),
        f"{numbers['reconnects']:,}",
    ]


def _cost(numbers: Mapping[str, Any]) -> str:
    if numbers["cost"] is None:
        return "unknown"
    return ("over " if numbers["unpriced"] else "") + f"${numbers['cost']:,.4g}"


def _csv(screen: Screen, answer: Mapping[str, Any]) -> None:
    names = [*answer["total"]]
    writer = csv.writer(sys.stdout)
    writer.writerow(["start", answer["split"] or "all", *names])
    groups: list[Mapping[str, Any]] = (
        answer["groups"] if answer["split"] else [{"label": "", "points": answer["points"]}]
    )
    for group in groups:
        for point in group["points"]:
            writer.writerow([point["start"], group["label"], *(point["numbers"][name] for name in names)])
