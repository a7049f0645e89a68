"""`dragoman cluster …`: the processes that share the installation."""

from typing import Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.tables import new_table

app = typer.Typer(no_args_is_help=True, help="The processes that share the installation; for who runs it.")


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """Show which processes share the installation, as the one that answers knows it.

    \b
    dragoman cluster status
    DRAGOMAN_URL=http://10.0.0.7:8765 dragoman cluster status --json
    """
    request(as_json, _show, "GET", path_of("cluster"))


def _show(screen: Screen, answer: Any) -> None:
    table = new_table("node", "host", "process", "version", "roles", "started")
    for node in answer["nodes"]:
        mark = " (answers)" if node["id"] == answer["node"] else ""
        table.add_row(
            plain(node["id"] + mark),
            plain(node["host"]),
            str(node["pid"]),
            plain(node["version"]),
            ", ".join(node["roles"]),
            ago(node["started_at"]),
        )
    screen.show(table)
    waiting, longest = answer["runs_waiting"], answer["longest_wait"]
    if waiting is None:
        screen.note("the database does not answer: how many runs wait is not known")
    else:
        since = f", the first for {longest:.1f} s" if waiting else ""
        screen.note(
            f"{waiting} runs wait for a process{since}; {answer['runs_at_work']} are at work in this one"
        )
    if not answer["is_clustered"]:
        screen.note("one process alone; many share a PostgreSQL with DRAGOMAN_CLUSTER_URL=nats://…")
    elif not answer["is_connected"]:
        screen.note("NATS does not answer: nodes work on, and find what others wrote by looking")
