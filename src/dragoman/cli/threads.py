"""`dragoman threads …`: conversations, and the connectors that are active in them."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, session
from dragoman.cli.tables import tools_table

app = typer.Typer(no_args_is_help=True, help="Conversations and the connectors that are active in them.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The thread.", show_default=False)]
Names = Annotated[list[str], typer.Argument(metavar="CONNECTOR...", help="By name.", show_default=False)]


@app.command("list")
def list_threads(
    limit: Annotated[int, typer.Option(help="Most threads.", min=1, max=1000)] = 100, as_json: AsJson = False
) -> None:
    """List your threads, the last changed first."""
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("threads"), limit=limit)
        if as_json:
            return screen.data(answer)
        if not answer["threads"]:
            return screen.note("there is no thread yet: dragoman threads create")
        from rich import box
        from rich.table import Table

        table = Table("thread", "title", "active connectors", "changed", box=box.SIMPLE_HEAD, pad_edge=False)
        for thread in answer["threads"]:
            table.add_row(
                f"[bold]{plain(thread['id'])}[/]",
                plain(thread["title"], 60),
                _active(thread),
                ago(thread["updated_at"]),
            )
        return screen.show(table)


@app.command("create")
def create(
    title: Annotated[str, typer.Argument(help="What it is about.")] = "",
    connector: Annotated[
        list[str] | None, typer.Option(help="Active in it; give it several times. Else your default set.")
    ] = None,
    thread_id: Annotated[str | None, typer.Option("--id", help="A name of your own; else random.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a thread.

    \b
    dragoman threads create "Trip to Rome"
    dragoman threads create --connector time --connector maps
    """
    with session(as_json) as (door, screen):
        body = {"title": title, "connectors": connector or None, "id": thread_id}
        _show(screen, door.ask("POST", path_of("threads"), body))


@app.command("show")
def show(thread: Id, as_json: AsJson = False) -> None:
    """Show what is active in a thread."""
    with session(as_json) as (door, screen):
        _show(screen, door.ask("GET", path_of("threads", thread)))


@app.command("remove")
def remove(thread: Id, as_json: AsJson = False) -> None:
    """Forget a thread. Connectors and their tools stay."""
    with session(as_json) as (door, screen):
        door.ask("DELETE", path_of("threads", thread))
        if as_json:
            screen.data({"removed": thread})
        else:
            screen.note(f"{thread} is removed")


@app.command("set")
def set_connectors(
    thread: Id,
    connectors: Annotated[
        list[str] | None, typer.Argument(metavar="[CONNECTOR]...", help="These and no others.")
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Back to your default set.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make these connectors active, and no others. Without any, none is.

    \b
    dragoman threads set thr_4f… time maps
    dragoman threads set thr_4f… --default
    """
    if default and connectors:
        raise typer.BadParameter("give connectors or --default, not both", param_hint="--default")
    with session(as_json) as (door, screen):
        wanted = None if default else connectors or []
        _show(screen, door.ask("PUT", path_of("threads", thread, "connectors"), {"connectors": wanted}))


@app.command("add")
def add(thread: Id, connectors: Names, as_json: AsJson = False) -> None:
    """Make these connectors active too. Effective for the next call."""
    with session(as_json) as (door, screen):
        _show(screen, door.ask("POST", path_of("threads", thread, "add"), {"connectors": connectors}))


@app.command("disable")
def disable(thread: Id, connectors: Names, as_json: AsJson = False) -> None:
    """Make these connectors inactive here. Effective for the next call."""
    with session(as_json) as (door, screen):
        _show(screen, door.ask("POST", path_of("threads", thread, "disable"), {"connectors": connectors}))


@app.command("tools")
def tools(
    thread: Id,
    max_tools: Annotated[int | None, typer.Option(help="No more than so many.", min=1)] = None,
    as_json: AsJson = False,
) -> None:
    """List what can be called in a thread, and why the rest cannot."""
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("threads", thread, "tools"), max_tools=max_tools)
        if as_json:
            return screen.data(answer)
        if answer["tools"]:
            screen.show(tools_table(answer["tools"]))
        for missing in answer["missing"]:
            screen.note(missing["text"] + (f" ({missing['hint']})" if missing["hint"] else ""))
        return None


def _show(screen: Screen, thread: Mapping[str, Any]) -> None:
    if screen.as_json:
        return screen.data(thread)
    from rich.table import Table

    card = Table.grid(padding=(0, 2))
    card.add_row("[dim]thread[/]", f"[bold]{plain(thread['id'])}[/] {plain(thread['title'])}")
    card.add_row("[dim]active[/]", _active(thread))
    if thread["limit"] is not None:
        card.add_row("[dim]at most[/]", str(thread["limit"]))
    screen.show(card)
    for note in thread["notes"]:
        screen.warn(note)
    return None


def _active(thread: Mapping[str, Any]) -> str:
    names = plain(", ".join(thread["active"])) or "[dim]none[/]"
    return f"{names} [dim](default)[/]" if thread["connectors"] is None else names
