"""`dragoman cluster …`: the processes that share the installation."""

from typing import Annotated, Any

import typer

from dragoman.cli.cluster_demo import demo
from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, request, session
from dragoman.cli.tables import new_table

app = typer.Typer(no_args_is_help=True, help="The processes that share the installation; for who runs it.")
app.command("demo")(demo)


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """Show which processes share the installation, as the one that answers knows it.

    \b
    dragoman cluster status
    DRAGOMAN_URL=http://10.0.0.7:8765 dragoman cluster status --json
    """
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("cluster"))
        answer["places"] = door.ask("GET", path_of("cluster", "places")) if answer["is_connected"] else []
        screen.data(answer) if as_json else _show(screen, answer)


@app.command("move")
def move(
    connector: Annotated[str, typer.Argument(help="slug of the connector")],
    user: Annotated[str | None, typer.Option(help="only the connection of this user")] = None,
    to: Annotated[str | None, typer.Option(help="id of the node that is to hold it")] = None,
    as_json: AsJson = False,
) -> None:
    """Have another node hold the connections of a connector. Its server is started anew there.

    \b
    dragoman cluster move browser --to 3f9c0d1e2b4a5c67
    """
    body = {"connector": connector, "user": user, "to": to}
    request(as_json, _show_places, "POST", path_of("cluster", "places", "move"), body, busy="moving …")


def _show_places(screen: Screen, places: Any) -> None:
    table = new_table("connector", "for", "node")
    for place in places:
        table.add_row(
            plain(place["connector"]),
            plain(place["user"] or f"everybody of {place['workspace']}"),
            plain(place["node"] + (" (chosen by hand)" if place["is_pinned"] else "")),
        )
    screen.show(table)


def _show(screen: Screen, answer: Any) -> None:
    table = new_table("node", "host", "process", "version", "roles", "runs", "started")
    for node in answer["nodes"]:
        mark = " (answers)" if node["id"] == answer["node"] else ""
        mark += " (drains)" if node["is_draining"] else ""
        table.add_row(
            plain(node["id"] + mark),
            plain(node["host"]),
            str(node["pid"]),
            plain(node["version"]),
            ", ".join(node["roles"]),
            str(node["runs"]),
            ago(node["started_at"]),
        )
    screen.show(table)
    waiting, longest = answer["runs_waiting"], answer["longest_wait"]
    if waiting is None:
        screen.note("the database does not answer: how many runs wait is not known")
    else:
        since = f", the first for {longest:.1f} s" if waiting else ""
        screen.note(f"{waiting} runs wait for a process{since}")
    if answer["places"]:
        _show_places(screen, answer["places"])
    if not answer["is_clustered"]:
        screen.note("one process alone; many share a PostgreSQL with DRAGOMAN_CLUSTER_URL=nats://…")
    elif not answer["is_connected"]:
        screen.note(
            "NATS does not answer: nodes work on, and find what others wrote by looking; calls of servers"
            " that have a state wait until it is back"
        )
