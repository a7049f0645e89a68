"""`dragoman models`: which language models can be used here, and why not the others."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.tables import new_table

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
    request(as_json, _show, "GET", path_of("models"), busy="looking for models …")


def _show(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.show(_table(answer["models"]))
    default = default_of(answer["models"])
    if default == OFFLINE:
        screen.note("only the offline model answers: plain matching, no language model")
        screen.note(HOW_TO)
    elif default:
        screen.note(f"{default} answers where nobody chose another")


def default_of(found: Iterable[Mapping[str, Any]]) -> str | None:
    return next((one["model"] for one in found if one["is_default"]), None)


def _table(found: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("", "provider", "model", "why")
    for one in found:
        sign = "[green]✓[/]" if one["is_usable"] else "[dim]✗[/]"
        style = "bold" if one["is_default"] else ("" if one["is_usable"] else "dim")
        name = plain(one["model"] or "–") + (" [green](default)[/]" if one["is_default"] else "")
        table.add_row(sign, plain(one["provider"]), name, plain(one["why"]), style=style)
    return table
