"""`dragoman tools resolve` and `footprint`: the tools for a prompt, and what tools cost in tokens."""

from typing import Annotated

import typer

from dragoman.cli.door import path_of
from dragoman.cli.session import AsJson, session
from dragoman.cli.tables import footprint_table, tools_table

Thread = Annotated[str | None, typer.Option(help="In this thread.", show_default=False)]


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
    wanted = {"prompt": " ".join(words), "thread": thread, "max_tools": max_tools, "cost_limit": cost_limit}
    with session(as_json) as (door, screen):
        with screen.busy("searching …"):
            found = door.ask("POST", path_of("tools", "resolve"), wanted)
        if as_json:
            return screen.data(found)
        if not found["hits"]:
            return screen.note(f"none of {found['total']:,} tools fits: say it in other words")
        screen.show(tools_table(found["hits"]))
        screen.note(f"{found['summary']} tools, {found['tokens']:,} tokens")
        if thread and not found["auto_load"]:
            screen.note("none was loaded: auto-load is off in your preferences")
        elif thread:
            screen.note(f"{len(found['loaded'])} newly loaded into {thread}")
        return None


def footprint(thread: Thread = None, as_json: AsJson = False) -> None:
    """Show what the tools of each connector cost a model in tokens, and what of it is in view.

    \b
    dragoman tools footprint
    dragoman tools footprint --thread work --json
    """
    with session(as_json) as (door, screen):
        cost = door.ask("GET", path_of("tools", "footprint"), thread=thread)
        if as_json:
            return screen.data(cost)
        if not cost["connectors"]:
            return screen.note("there is no tool yet: dragoman connectors list shows what is connected")
        screen.show(footprint_table(cost["connectors"]))
        about = "about " if cost["counted_by"] == "estimate" else ""
        screen.note(
            f"{about}{cost['tokens_in_view']:,} of {cost['tokens']:,} tokens are in view; "
            f"the budget is {cost['budget']:,}"
        )
        return None
