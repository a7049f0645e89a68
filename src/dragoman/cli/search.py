"""`dragoman tools search`: the right tool among many."""

from typing import Annotated

import typer

from dragoman.cli.door import path_of
from dragoman.cli.session import AsJson, session
from dragoman.cli.tables import tools_table


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
