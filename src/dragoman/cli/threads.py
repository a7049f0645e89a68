"""`dragoman threads …`: conversations, and the connectors that are active in them."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.agents import Connectors
from dragoman.cli.completion import names_of
from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, Yes, note, request, request_removal, rows, session
from dragoman.cli.tables import new_card, new_table, tools_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="Conversations and the connectors that are active in them.")

Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="The thread.", show_default=False, autocompletion=names_of("threads")),
]


@app.command("list")
def list_threads(
    limit: Annotated[int, typer.Option(help="Most threads.", min=1, max=1000)] = 100,
    search: Annotated[str | None, typer.Option(help="Words of the title or of a message.")] = None,
    sort: Annotated[str, typer.Option(help="latest, or title.")] = "latest",
    as_json: AsJson = False,
) -> None:
    """List your threads: pinned ones first, then the last changed or written in, or by title."""
    none = "nothing is found" if search else "there is no thread yet: dragoman threads create"
    request(
        as_json, rows(_table, "threads", none), "GET", path_of("threads"), limit=limit, q=search, sort=sort
    )


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
    body = {"title": title, "connectors": connector or None, "id": thread_id}
    request(as_json, _show, "POST", path_of("threads"), body)


@app.command("show")
def show(thread: Id, as_json: AsJson = False) -> None:
    """Show what is active in a thread."""
    request(as_json, _show, "GET", path_of("threads", thread))


@app.command("update")
def update(
    thread: Id,
    title: Annotated[str | None, typer.Option(help="What it is about.")] = None,
    pinned: Annotated[bool | None, typer.Option("--pin/--unpin", help="List it first, or not.")] = None,
    as_json: AsJson = False,
) -> None:
    """Rename a thread, or pin it.

    \b
    dragoman threads update thr_4f… --title "Trip to Rome"
    dragoman threads update thr_4f… --pin
    """
    body = {name: value for name, value in (("title", title), ("pinned", pinned)) if value is not None}
    request(as_json, _show, "PATCH", path_of("threads", thread), body)


@app.command("branch")
def branch(
    thread: Id,
    through: Annotated[int | None, typer.Option(help="The last message to take along.", min=0)] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a new thread with what was said in this one."""
    request(as_json, _show, "POST", path_of("threads", thread, "branch"), {"through": through})


@app.command("export")
def export(thread: Id, as_json: AsJson = False) -> None:
    """Print what was said in a thread: as Markdown, or with --json as JSON."""
    path = path_of("threads", thread, "export")
    with session(as_json) as (door, screen):
        if as_json:
            screen.data(door.ask("GET", path, format="json"))
        else:
            screen.text(door.fetch(path, format="markdown").body.decode())


@app.command("remove")
def remove(thread: Id, yes: Yes = False, as_json: AsJson = False) -> None:
    """Forget a thread. Connectors and their tools stay."""
    show, question = note(f"{thread} is removed"), f"Forget {thread} with its messages?"
    request_removal(as_json, show, path_of("threads", thread), question, yes, name=thread)


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
    wanted = None if default else connectors or []
    request(as_json, _show, "PUT", path_of("threads", thread, "connectors"), {"connectors": wanted})


@app.command("add")
def add(thread: Id, connectors: Connectors, as_json: AsJson = False) -> None:
    """Make these connectors active too. Effective for the next call."""
    request(as_json, _show, "POST", path_of("threads", thread, "add"), {"connectors": connectors})


@app.command("disable")
def disable(thread: Id, connectors: Connectors, as_json: AsJson = False) -> None:
    """Make these connectors inactive here. Effective for the next call."""
    request(as_json, _show, "POST", path_of("threads", thread, "disable"), {"connectors": connectors})


@app.command("tools")
def tools(
    thread: Id,
    max_tools: Annotated[int | None, typer.Option(help="No more than so many.", min=1)] = None,
    as_json: AsJson = False,
) -> None:
    """List what can be called in a thread, and why the rest cannot."""
    request(as_json, show_tools, "GET", path_of("threads", thread, "tools"), max_tools=max_tools)


def show_tools(screen: Screen, answer: Mapping[str, Any], none: str = "") -> None:
    if answer["tools"]:
        screen.show(tools_table(answer["tools"]))
    elif none:
        screen.note(none)
    for missing in answer.get("missing", ()):
        screen.note(missing["text"] + (f" ({missing['hint']})" if missing["hint"] else ""))


def _show(screen: Screen, thread: Mapping[str, Any]) -> None:
    card = new_card()
    card.add_row("thread", f"[bold]{plain(thread['id'])}[/] {plain(thread['title'])}")
    card.add_row("active", _active(thread))
    if thread["limit"] is not None:
        card.add_row("at most", str(thread["limit"]))
    screen.show(card)
    for warning in thread["notes"]:
        screen.warn(warning)


def _table(threads: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("thread", "title", "active connectors", "changed")
    for one in threads:
        title = plain(one["title"], 60)
        table.add_row(f"[bold]{plain(one['id'])}[/]", title, _active(one), ago(one["updated_at"]))
    return table


def _active(thread: Mapping[str, Any]) -> str:
    names = plain(", ".join(thread["active"])) or "[dim]none[/]"
    return f"{names} [dim](default)[/]" if thread["connectors"] is None else names
