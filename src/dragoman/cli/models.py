"""`dragoman models`: which language models can be used here, and why not the others."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.cli.door import path_of
from dragoman.cli.screen import plain
from dragoman.cli.session import AsJson, session

if TYPE_CHECKING:
    from rich.table import Table

OFFLINE = "offline"
HOW_TO = "set ANTHROPIC_API_KEY or OPENAI_API_KEY, run Ollama, or name one: DRAGOMAN_MODEL=provider:model"


def models(as_json: AsJson = False) -> None:
    """Show which models were found, in the order of choice, and what the others lack.

    \b
    dragoman models
    DRAGOMAN_MODEL=openai:gpt-5 dragoman models
    """
    with session(as_json) as (door, screen):
        with screen.busy("looking for models …"):
            answer = door.ask("GET", path_of("models"))
        if as_json:
            return screen.data(answer)
        screen.show(_table(answer["models"]))
        default = default_of(answer["models"])
        if default == OFFLINE:
            screen.note("only the offline model answers: plain matching, no language model")
            screen.note(HOW_TO)
        elif default:
            screen.note(f"{default} answers where nobody chose another")
        return None


def default_of(found: Iterable[Mapping[str, Any]]) -> str | None:
    return next((one["model"] for one in found if one["is_default"]), None)


def _table(found: Iterable[Mapping[str, Any]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table("", "provider", "model", "why", box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for one in found:
        sign = "[green]✓[/]" if one["is_usable"] else "[dim]✗[/]"
        style = "bold" if one["is_default"] else ("" if one["is_usable"] else "dim")
        name = plain(one["model"] or "–") + (" [green](default)[/]" if one["is_default"] else "")
        table.add_row(sign, plain(one["provider"]), name, plain(one["why"]), style=style)
    return table
