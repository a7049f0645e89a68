"""`[defaults.bounds]` of a `dragoman.toml`: what the app allows every user. Reads, decides nothing."""

from pathlib import Path

from dragoman.errors import InvalidConfig
from dragoman.formats.parsing import read_document, table
from dragoman.hub.preferences import narrowed_bounds
from dragoman.people import Bounds

_KNOWN = frozenset({"bounds"})


def read_default_bounds(path: Path) -> Bounds | None:
    """None when the file cannot be read at all, which is told of with its connectors."""
    try:
        document = table(read_document(path.read_text(encoding="utf-8"), str(path)))
    except (OSError, UnicodeDecodeError, InvalidConfig):
        return None
    defaults = table(document.get("defaults"))
    if unknown := sorted(defaults.keys() - _KNOWN):
        raise InvalidConfig(f"defaults has no {unknown[0][:60]!r}", hint="it has a table defaults.bounds")
    return narrowed_bounds(Bounds(), table(defaults.get("bounds")), Bounds())
