"""Tools that go together: one that wants the id of a thing, and those of its connector that find such things.

Who asks for "reviews of Titanic" needs the tool that wants a `movie_id` and, before it, the one that searches
movies, of which the question says nothing. Pure: knows no question and no score.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import Any, cast

from dragoman.catalog.search.words import parts, stem
from dragoman.tool import Tool

_IDS = frozenset(("id", "ids", "uid", "uuid", "identifier"))
# How surely a tool whose name has the word finds things by what a person calls them.
_FINDS = {
    stem(word): sureness
    for word, sureness in {
        "search": 1.0,
        "find": 1.0,
        "lookup": 1.0,
        "query": 0.8,
        "list": 0.7,
        "discover": 0.6,
        "browse": 0.6,
    }.items()
}
_METHODS = frozenset(("get", "post"))


class Finders:
    """By row. A connector's tools find things for the tools of that connector."""

    def __init__(self) -> None:
        self._wanted: dict[int, tuple[str, frozenset[str]]] = {}
        self._found: dict[tuple[str, str], dict[int, float]] = {}

    def add(self, row: int, tool: Tool) -> None:
        wanted = _wanted(tool)
        if wanted:
            self._wanted[row] = tool.slug, wanted
        for thing, sureness in _found(tool, wanted):
            self._found.setdefault((tool.slug, thing), {})[row] = sureness

    def remove(self, row: int, tool: Tool) -> None:
        """`tool` is the one that was added."""
        self._wanted.pop(row, None)
        for thing, _ in _found(tool, _wanted(tool)):
            rows = self._found[tool.slug, thing]
            del rows[row]
            if not rows:
                del self._found[tool.slug, thing]

    def of(self, row: int) -> Iterator[tuple[int, float]]:
        """Rows that find what this one wants the id of, and how surely."""
        slug, wanted = self._wanted.get(row, ("", ()))
        for thing in wanted:
            yield from self._found.get((slug, thing), {}).items()


def _wanted(tool: Tool) -> frozenset[str]:
    """The things whose ids it cannot do without."""
    required = tool.definition.input_schema.get("required")
    listed = cast("list[Any]", required) if isinstance(required, list) else []
    named = [one for one in listed if isinstance(one, str)]
    return _ids_of(tool.original_name).union(*map(_ids_of, named))


@lru_cache(maxsize=10_000)
def _ids_of(text: str) -> frozenset[str]:
    pairs = pairwise(parts(text))
    return frozenset(stem(thing) for thing, last in pairs if last in _IDS and len(thing) > 1)


def _found(tool: Tool, wanted: frozenset[str]) -> Iterator[tuple[str, float]]:
    """What it finds; the surer, the less else its name says."""
    words = [stem(word) for word in parts(tool.original_name)]
    sureness = max((_FINDS.get(word, 0.0) for word in words), default=0.0)
    if not sureness:
        return
    things = [word for word in words if word not in _FINDS and word not in _METHODS]
    for thing in {*things} - wanted:
        yield thing, sureness / sqrt(len(things))
