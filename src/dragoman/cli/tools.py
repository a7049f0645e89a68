"""`dragoman tools …`: what can be called."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import ago
from dragoman.cli.session import AsJson, session
from dragoman.cli.tables import arguments_table, tool_card, tools_table
from dragoman.cli.tool_loading import footprint, resolve

app = typer.Typer(no_args_is_help=True, help="See, switch, set and accept the tools of all connectors.")
Name = Annotated[
    str, typer.Argument(help="As mcp_<connector>_<tool> or <connector>__<tool>.", show_default=False)
]


@app.command()
def search(
    words: Annotated[
        list[str],
        typer.Argument(help="What the tool should do, its name, or a pattern.", show_default=False),
    ],
    strategy: Annotated[str, typer.Option(help="hybrid, bm25, semantic or regex.")] = "hybrid",
    limit: Annotated[int, typer.Option(help="Most hits, at most 100.")] = 10,
    connector: Annotated[
        str | None, typer.Option(help="Only tools of this connector.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find tools by what they do, the best first.

    \b
    dragoman tools search send an email
    dragoman tools search 'issue.*(create|close)' --strategy regex
    """
    query = " ".join(words)
    with session(as_json) as (door, screen):
        with screen.busy("searching …"):
            found = door.ask(
                "GET",
                path_of("tools", "search"),
                q=query,
                strategy=strategy,
                limit=limit,
                connector=connector,
            )
        if as_json:
            return screen.data(found)
        if found["hits"]:
            screen.show(tools_table(found["hits"]))
            screen.note(f"{found['summary']} tools")
        else:
            screen.note(
                f"none of {found['total']:,} tools fits: say it in other words, or dragoman tools list"
            )
        return None


app.command("resolve")(resolve)
app.command("footprint")(footprint)


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


@app.command("set")
def set_tool(
    name: Name,
    callers: Annotated[
        str | None,
        typer.Option(
            help="Who may call it: of direct, agent, mcp and code, with commas.", show_default=False
        ),
    ] = None,
    approval: Annotated[
        str | None,
        typer.Option(help="never, default, always, or inherit: as the connector has it.", show_default=False),
    ] = None,
    require: Annotated[
        str | None,
        typer.Option(help="Capabilities it requires, with commas; '' for none.", show_default=False),
    ] = None,
    cost: Annotated[float | None, typer.Option(help="Dollars a call.", show_default=False)] = None,
    cache: Annotated[
        float | None,
        typer.Option(help="Seconds to keep results, of tools that only read.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set who may call a tool, when a person is asked first, what it requires and costs.

    \b
    dragoman tools set mcp_mail_send --approval always
    dragoman tools set mail__search --callers direct,agent,code --cost 0.002
    dragoman tools set mail__send --require finance
    """
    given: dict[str, Any] = {
        "allowed_callers": _words(callers),
        "required_capabilities": _words(require),
        "cost": cost,
        "cache_ttl": cache,
    }
    settings = {field: value for field, value in given.items() if value is not None}
    if approval is not None:
        settings["approval"] = None if approval == "inherit" else approval
    _act(name, "", as_json, settings)


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word for word in text.replace(",", " ").split() if word]


def _settings_line(tool: Mapping[str, Any]) -> str:
    parts = [f"called by {', '.join(tool['allowed_callers']) or 'nobody'}"]
    if tool["approval"]:
        parts.append(f"approval {tool['approval']}")
    if tool["required_capabilities"]:
        parts.append(f"requires {', '.join(tool['required_capabilities'])}")
    if tool["cost"]:
        parts.append(f"costs ${tool['cost']:g} a call")
    if tool["cache_ttl"]:
        parts.append(f"results kept for {tool['cache_ttl']:g} s")
    return "; ".join(parts)


def _act(name: str, action: str, as_json: bool, settings: Mapping[str, Any] | None = None) -> None:
    from rich.text import Text

    with session(as_json) as (door, screen):
        if settings is not None:
            tool = door.ask("PATCH", path_of("tools", name), settings)
        elif action:
            tool = door.ask("POST", path_of("tools", name, action))
        else:
            tool = door.ask("GET", path_of("tools", name))
        if as_json:
            return screen.data(tool)
        screen.show(tool_card(tool))
        screen.show(Text(_settings_line(tool), "dim"))
        if table := arguments_table(tool["input_schema"]):
            screen.show(table)
        for version in tool["versions"]:
            if version["diff"]:
                screen.show(Text(f"version {version['version']}, {ago(version['seen_at'])}:", "bold"))
                screen.text(version["diff"])
        return None
