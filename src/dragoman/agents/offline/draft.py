"""The arguments of one call as they are being found: what is there, what is open, what was used up.

Knows no way of finding them; who fills it says where each value stood.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from dragoman.agents.offline.kinds import coerced
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.sentence import Sentence
from dragoman.agents.offline.tools import Candidate, Listed

_CLOSE_NAMES = 4  # letters that two words must share from the start to be one: info, information


@dataclass(frozen=True, slots=True)
class Filled:
    """`missing` are required and not said. `others` are further arguments of the same kind: one call each."""

    arguments: Mapping[str, Any]
    missing: tuple[Parameter, ...] = ()
    others: tuple[Mapping[str, Any], ...] = ()

    @property
    def all_arguments(self) -> tuple[Mapping[str, Any], ...]:
        return (self.arguments, *self.others)


@dataclass(slots=True)
class Draft:
    """One tool being filled from one clause. `known` are values that some text listed as possible."""

    tool: Candidate
    sentence: Sentence
    today: date
    known: Sequence[Listed] = ()
    whole: str = ""
    found: dict[tuple[str, ...], Any] = field(default_factory=dict[tuple[str, ...], Any])
    spread: list[tuple[Parameter, list[Any]]] = field(default_factory=list[tuple[Parameter, list[Any]]])
    left_over: set[int] = field(default_factory=set[int])
    """Where words stand that were taken only because nothing else claimed them."""

    def filled(self) -> Filled:
        for one in self.tool.parameters:
            if one.required and one.path not in self.found:
                if one.default is not None:
                    self.found[one.path] = one.default
                elif len(one.choices) == 1:
                    self.found[one.path] = one.choices[0]
        missing = tuple(one for one in self.tool.parameters if one.required and one.path not in self.found)
        others = [
            _nested({**self.found, one.path: value}) for one, values in self.spread for value in values[1:]
        ]
        return Filled(_nested(self.found), missing, tuple(others))

    def open(self) -> list[Parameter]:
        """What is still to be filled, required ones first."""
        left = [one for one in self.tool.parameters if one.path not in self.found]
        return sorted(left, key=lambda one: not one.required)

    def take(self, parameter: Parameter, value: Any, start: int, end: int) -> bool:
        if value is None or value == "":
            return False
        self.found[parameter.path] = value
        self.sentence.use(start, end)
        return True

    def said(self, parameter: Parameter, text: str) -> Any:
        if parameter.takes_many and not {"string", "integer", "number"} & parameter.types:
            pieces = [coerced(parameter, piece) for piece in re.split(r"\s*,\s*|\s+and\s+", text) if piece]
            return [piece for piece in pieces if piece is not None] or None
        return coerced(parameter, text)


def is_one(word: str, core: str) -> bool:
    shorter = min(len(word), len(core))
    return word == core or (shorter >= _CLOSE_NAMES and (word.startswith(core) or core.startswith(word)))


def _nested(found: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for path, value in found.items():
        table = arguments
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = value
    return arguments
