"""Names for the shell's completion: of connectors, tools, bundles, threads, agents, runs and recipes.

A running service is asked, and nothing else: opening a store would make everybody wait for a TAB.
"""

from collections.abc import Callable
from typing import Any, Literal

from dragoman.cli.door import HttpDoor, Refused, announced_service, path_of
from dragoman.cli.screen import cleaned
from dragoman.errors import DragomanError
from dragoman.settings import Settings

Kind = Literal["connectors", "tools", "bundles", "threads", "agents", "runs", "recipes"]
# Of each kind: what it is called by, and what is said of it beside.
_FIELDS: dict[Kind, tuple[str, str]] = {
    "connectors": ("slug", "description"),
    "tools": ("name", "title"),
    "bundles": ("name", "description"),
    "threads": ("id", "title"),
    "agents": ("name", "description"),
    "runs": ("id", "status"),
    "recipes": ("id", "question"),
}
_LIMIT = 2.0


def names_of(kind: Kind) -> Callable[[str], list[tuple[str, str]]]:
    """What Typer asks for the words that can stand here."""
    name, said = _FIELDS[kind]

    def completed(incomplete: str) -> list[tuple[str, str]]:
        found = ((str(one[name]), _line(one.get(said))) for one in _asked(kind))
        return [pair for pair in found if pair[0].startswith(incomplete)]

    return completed


def _asked(kind: Kind) -> list[dict[str, Any]]:
    """All of them, or none: whoever presses TAB is told nothing of what went wrong."""
    try:
        service = announced_service(Settings.load())
        return HttpDoor(service, limit=_LIMIT).ask("GET", path_of(kind))[kind] if service else []
    except (DragomanError, Refused):
        return []


def _line(text: Any) -> str:
    return " ".join(cleaned(str(text or "")).split())[:80]
