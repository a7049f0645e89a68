"""`dragoman tools …`: what can be called."""

from typing import Annotated

import typer

from dragoman.cli.chips import arguments_table, tool_card, tools_table
from dragoman.cli.door import path_of
from dragoman.cli.screen import ago
from dragoman.cli.search import search
from dragoman.cli.session import AsJson, session

app = typer.Typer(no_args_is_help=True, help="See, switch and accept the tools of all connectors.")
app.command("search")(search)

Name = Annotated[
    str, typer.Argument(help="As mcp_<connector>_<tool> or <connector>__<tool>.", show_default=False)
]


@app.command("list")
def list_tools(
    connector: Annotated[
        str | None, typer.Argument(help="Only of this connector.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tools, whether their servers are connected or not.

    \b
    dragoman tools list
    dragoman tools list time
    """
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("tools"), connector=connector)
        if as_json:
            screen.data(answer)
        elif answer["tools"]:
            screen.show(tools_table(answer["tools"]))
        else:
            screen.note("there is no tool yet: dragoman connectors list shows what is connected")


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a tool: its arguments, its state, and every version with what changed.

    \b
    dragoman tools show mcp_time_get_current_time
    dragoman tools show time__get_current_time --json
    """
    _act(name, "", as_json)


@app.command("enable")
def enable(name: Name, as_json: AsJson = False) -> None:
    """Let the tool be called again."""
    _act(name, "enable", as_json)


@app.command("disable")
def disable(name: Name, as_json: AsJson = False) -> None:
    """Refuse calls of this tool."""
    _act(name, "disable", as_json)


@app.command("accept")
def accept(name: Name, as_json: AsJson = False) -> None:
    """Accept a changed definition of a pinned tool. Read what changed first: tools show NAME."""
    _act(name, "accept", as_json)


def _act(name: str, action: str, as_json: bool) -> None:
    from rich.text import Text

    with session(as_json) as (door, screen):
        tool = (
            door.ask("POST", path_of("tools", name, action))
            if action
            else door.ask("GET", path_of("tools", name))
        )
        if as_json:
            return screen.data(tool)
        screen.show(tool_card(tool))
        if table := arguments_table(tool["input_schema"]):
            screen.show(table)
        for version in tool["versions"]:
            if version["diff"]:
                screen.show(Text(f"version {version['version']}, {ago(version['seen_at'])}:", "bold"))
                screen.text(version["diff"])
        return None
