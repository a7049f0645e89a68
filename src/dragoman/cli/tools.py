"""`dragoman tools …`: what can be called."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dragoman.cli.completion import names_of
from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, Show, request, rows
from dragoman.cli.tables import arguments_table, footprint_table, tool_card, tools_table

app = typer.Typer(no_args_is_help=True, help="See, switch, set and accept the tools of all connectors.")
_NO_TOOL = "there is no tool yet: dragoman connectors list shows what is connected"
_SPELLED = "As <connector>.<tool> or mcp_<connector>_<tool>."
Name = Annotated[str, typer.Argument(help=_SPELLED, show_default=False, autocompletion=names_of("tools"))]
Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME", help=_SPELLED, show_default=False, autocompletion=names_of("tools")),
]
Thread = Annotated[
    str, typer.Option(help="The thread.", show_default=False, autocompletion=names_of("threads"))
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

    def show(screen: Screen, found: Mapping[str, Any]) -> None:
        if not found["hits"]:
            return screen.note(
                f"none of {found['total']:,} tools fits: say it in other words, or dragoman tools list"
            )
        screen.show(tools_table(found["hits"]))
        screen.note(f"{found['summary']} tools")
        if found["strategy"] != strategy:
            screen.note("by their words alone; for their meaning: pip install 'dragoman[vectors]'")
        return None

    asked: dict[str, Any] = {
        "q": " ".join(words),
        "strategy": strategy,
        "limit": limit,
        "connector": connector,
    }
    request(as_json, show, "GET", path_of("tools", "search"), busy="searching …", **asked)


@app.command("resolve")
def resolve(
    words: Annotated[list[str], typer.Argument(metavar="PROMPT", help="What is to be done.")],
    thread: Annotated[
        str | None, typer.Option(help="Load them into this thread.", show_default=False)
    ] = None,
    max_tools: Annotated[int, typer.Option(help="Most tools, at most 100.")] = 5,
    cost_limit: Annotated[
        float | None, typer.Option(help="Most dollars that a call may cost.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the tools for a prompt and load them into a thread, unless auto-load is off.

    \b
    dragoman tools resolve write to everybody in the team
    dragoman tools resolve close the issue --thread work --max-tools 3
    """

    def show(screen: Screen, found: Mapping[str, Any]) -> None:
        if not found["hits"]:
            return screen.note(f"none of {found['total']:,} tools fits: say it in other words")
        screen.show(tools_table(found["hits"]))
        screen.note(f"{found['summary']} tools, {found['tokens']:,} tokens")
        if thread and not found["auto_load"]:
            screen.note("none was loaded: auto-load is off in your preferences")
        elif thread:
            screen.note(f"{len(found['loaded'])} newly loaded into {thread}")
        return None

    wanted = {"prompt": " ".join(words), "thread": thread, "max_tools": max_tools, "cost_limit": cost_limit}
    request(as_json, show, "POST", path_of("tools", "resolve"), wanted, busy="searching …")


@app.command("load")
def load(names: Names, thread: Thread, as_json: AsJson = False) -> None:
    """Bring tools into the view of a thread's agents: all of them, or none where one cannot be.

    \b
    dragoman tools load mail__search mail__send --thread thr_4f…
    """
    wanted = {"thread": thread, "tools": names}
    request(as_json, _show_loaded("loaded"), "POST", path_of("tools", "load"), wanted)


@app.command("unload")
def unload(
    thread: Thread,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="All that are loaded if left out.",
            show_default=False,
            autocompletion=names_of("tools"),
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take tools out of the view of a thread's agents; search still finds them.

    \b
    dragoman tools unload mail__send --thread thr_4f…
    dragoman tools unload --thread thr_4f…
    """
    wanted = {"thread": thread, "tools": names or None}
    request(as_json, _show_loaded("unloaded"), "POST", path_of("tools", "unload"), wanted)


def _show_loaded(what: str) -> Show:
    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        for name in answer["changed"]:
            screen.show(plain(name))
        screen.note(
            f"{len(answer['changed'])} {what}; {answer['thread']} has {len(answer['loaded'])} loaded now"
        )

    return show


@app.command("footprint")
def footprint(
    thread: Annotated[str | None, typer.Option(help="In this thread.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the tools of each connector cost a model in tokens, and what of it is in view.

    \b
    dragoman tools footprint
    dragoman tools footprint --thread work --json
    """
    request(as_json, _show_footprint, "GET", path_of("tools", "footprint"), thread=thread)


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
    request(as_json, rows(tools_table, "tools", _NO_TOOL), "GET", path_of("tools"), connector=connector)


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a tool: its arguments, its state, and every version with what changed.

    \b
    dragoman tools show mcp_time_get_current_time
    dragoman tools show time__get_current_time --json
    """
    request(as_json, _show, "GET", path_of("tools", name))


@app.command("enable")
def enable(name: Name, as_json: AsJson = False) -> None:
    """Let the tool be called again."""
    request(as_json, _show, "POST", path_of("tools", name, "enable"))


@app.command("disable")
def disable(name: Name, as_json: AsJson = False) -> None:
    """Refuse calls of this tool."""
    request(as_json, _show, "POST", path_of("tools", name, "disable"))


@app.command("accept")
def accept(name: Name, as_json: AsJson = False) -> None:
    """Accept a changed definition of a pinned tool. Read what changed first: tools show NAME."""
    request(as_json, _show, "POST", path_of("tools", name, "accept"))


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
    request(as_json, _show, "PATCH", path_of("tools", name), settings)


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


def _show(screen: Screen, tool: Mapping[str, Any]) -> None:
    from rich.text import Text

    screen.show(tool_card(tool))
    screen.show(Text(_settings_line(tool), "dim"))
    if table := arguments_table(tool["input_schema"]):
        screen.show(table)
    for version in tool["versions"]:
        if version["diff"]:
            screen.show(Text(f"version {version['version']}, {ago(version['seen_at'])}:", "bold"))
            screen.text(version["diff"])


def _show_footprint(screen: Screen, cost: Mapping[str, Any]) -> None:
    if not cost["connectors"]:
        return screen.note(_NO_TOOL)
    screen.show(footprint_table(cost["connectors"]))
    about = "about " if cost["counted_by"] == "estimate" else ""
    return screen.note(
        f"{about}{cost['tokens_in_view']:,} of {cost['tokens']:,} tokens are in view; "
        f"the budget is {cost['budget']:,}"
    )
