"""`dragoman audit …`"""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, request, session
from dragoman.cli.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="Who did what to which, and whether the trail is whole.")

Workspace = Annotated[str | None, typer.Option(help="By id or name; for the operator.", show_default=False)]


@app.command("list")
def list_entries(
    user: Annotated[str | None, typer.Option(help="Only what this user did.", show_default=False)] = None,
    action: Annotated[
        str | None, typer.Option(help="Only this: call, connector.added, …", show_default=False)
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Words of what it was done to, or of the outcome.", show_default=False)
    ] = None,
    sort: Annotated[str, typer.Option(help="newest or oldest.")] = "newest",
    after: Annotated[int, typer.Option(help="Only those that follow the entry of this number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 30,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """List what was done. Arguments appear as their hash only.

    \b
    dragoman audit list
    dragoman audit list --user ada --action call --limit 100
    dragoman audit list --query github
    """
    asked: dict[str, Any] = {
        "user": user,
        "action": action,
        "q": query,
        "sort": sort,
        "after": after,
        "limit": limit,
        "workspace": workspace,
    }
    request(as_json, _show_entries, "GET", path_of("audit"), **asked)


@app.command("verify")
def verify(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Follow the whole chain and say whether an entry was changed or taken out. Ends with 1 if so.

    \b
    dragoman audit verify
    """
    verdict = request(as_json, _show_verdict, "GET", path_of("audit", "verify"), workspace=workspace)
    if not verdict["is_whole"]:
        raise typer.Exit(1)


@app.command("export")
def export(
    after: Annotated[int, typer.Option(help="Only newer ones than this number.")] = 0,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole trail to stdout, oldest first, one JSON document a line; with --json one list.

    \b
    dragoman audit export > audit.jsonl
    """
    with session(as_json) as (door, screen):
        entries: list[Any] = []
        while body := door.fetch(path_of("audit", "export"), after=after, workspace=workspace).body:
            lines = body.decode().splitlines()
            after = json.loads(lines[-1])["number"]
            if as_json:
                entries += map(json.loads, lines)
            else:
                sys.stdout.write("\n".join(lines) + "\n")
        if as_json:
            screen.data(entries)


def _show_entries(screen: Screen, answer: Mapping[str, Any]) -> None:
    if answer["entries"]:
        screen.show(_table(answer["entries"], answer["names"]))
    else:
        screen.note("there is no such entry")


def _show_verdict(screen: Screen, verdict: Mapping[str, Any]) -> None:
    if not verdict["is_whole"]:
        hint = f"what was written before it, up to entry {verdict['number']}, is as it was written"
        return screen.fail({"detail": f"the trail is broken: {verdict['problem']}", "hint": hint})
    erased = f", {verdict['erased']:,} of them erased" if verdict["erased"] else ""
    screen.text(f"the trail is whole: {verdict['count']:,} entries{erased}, the last is {verdict['number']}")
    return screen.text(f"its hash is {verdict['head']}") if verdict["head"] else None


def _table(entries: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> "Table":
    table = new_table("number", "when", "who", "what", "to which", "outcome", right=("number",))
    for entry in entries:
        who = names.get(entry["user"], entry["user"]) + (f" by {entry['agent']}" if entry["agent"] else "")
        outcome = "[green]ok[/]" if entry["outcome"] == "ok" else f"[red]{plain(entry['outcome'])}[/]"
        table.add_row(
            str(entry["number"]),
            ago(entry["time"]),
            plain(who),
            plain(entry["action"]),
            plain(names.get(entry["subject"], entry["subject"]), 80),
            outcome,
        )
    return table
