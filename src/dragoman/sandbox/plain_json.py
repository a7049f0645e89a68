"""Values that leave the sandbox, as plain JSON of limited size. Pure.

A list may hold the same list a thousand times, and that one another: it arrives small and would be written
large. So what would be written is counted while it is read, and reading stops at the limit.
"""

import datetime
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from pydantic_monty import MontyClassProxy

from dragoman.tool import Json

_DEEPEST = 100
_MOST_PARTS = 100_000  # reading more would hold up the others for too long
_BITS = 14_000  # about 4,200 digits: Python itself writes no longer ones
# What the sandbox hands out in place of what only lives inside.
_STAND_IN = re.compile(r"<(coroutine) external_future\(\d+\)>|<(function) '[^']*' at 0x[0-9a-f]+>")
_AS_TEXT = (datetime.date, datetime.time, datetime.timedelta, Decimal, PurePath, UUID)


class NotPlain(Exception):
    """The value cannot be written as JSON."""


class ValueTooLarge(Exception):
    """It would be larger than the limit."""


def plain(value: Any, limit: int) -> Json:
    """The value as JSON; `NotPlain` names the part that is none, `ValueTooLarge` beyond `limit` bytes."""
    return _Reader(limit).read(value, "result", 0)


class _Reader:
    def __init__(self, limit: int) -> None:
        self._left = limit
        self._parts = _MOST_PARTS

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ValueTooLarge

    def read(self, value: Any, place: str, depth: int) -> Json:
        if depth > _DEEPEST:
            raise NotPlain(f"it is nested deeper than {_DEEPEST} levels")
        self._spend(2)
        self._parts -= 1
        if self._parts < 0:
            raise ValueTooLarge
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, place)
        if isinstance(value, int | float):
            return self._number(value, place)
        if isinstance(value, Mapping):
            return self._table(cast("Mapping[Any, Any]", value), place, depth)
        if isinstance(value, list | tuple | set | frozenset):
            items = cast("list[Any]", value)
            return [self.read(item, f"{place}[{at}]", depth + 1) for at, item in enumerate(items)]
        return self._other(value, place, depth)

    def _text(self, value: str, place: str) -> str:
        if value.startswith("<") and (found := _STAND_IN.fullmatch(value)):
            why = "a call that was never awaited: write await before it" if found[1] else "a function"
            raise NotPlain(f"{place} is {why}")
        # No character has more than four bytes: short texts need not be measured.
        self._spend(len(value) if len(value) * 4 < self._left else len(value.encode("utf-8", "replace")))
        return value

    def _number(self, value: float, place: str) -> Json:
        if isinstance(value, int):
            if value.bit_length() > _BITS:
                raise NotPlain(f"{place} is a number of more than 4,200 digits")
            self._spend(value.bit_length() // 3)
            return value
        self._spend(8)
        return value if math.isfinite(value) else str(value)

    def _table(self, table: Mapping[Any, Any], place: str, depth: int) -> Json:
        found: dict[str, Json] = {}
        for key, item in table.items():
            if not isinstance(key, str | int | float | bool | None):
                raise NotPlain(f"{place} has a key of type {type(key).__name__}; keys must be text")
            word = key if isinstance(key, str) else str(key)
            self._spend(len(word) + 2)
            found[word] = self.read(item, f"{place}[{word[:40]!r}]", depth + 1)
        return found

    def _other(self, value: Any, place: str, depth: int) -> Json:
        if isinstance(value, _AS_TEXT):
            word = str(value)
            self._spend(len(word))
            return word
        if isinstance(value, MontyClassProxy):
            if value.is_dataclass:
                return self._table(value.attributes, place, depth)
            raise NotPlain(f"{place} is an instance of the class {value.name[:80]!r}")
        if isinstance(value, bytes):
            raise NotPlain(f"{place} is bytes")
        raise NotPlain(f"{place} is of type {type(value).__name__[:80]}")
