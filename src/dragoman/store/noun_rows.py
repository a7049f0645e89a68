"""Agents, users, keys and workspaces as rows: a column for each field that has one.

A field without a column of its own is kept in the column `settings`, unless it is at its default: a new
setting needs no new column, and a better default reaches what nobody chose.
"""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast, get_origin, get_type_hints

from sqlalchemy import RowMapping, Table

from dragoman.setting import people_set, type_of
from dragoman.store.later_fields import kept_facts

Noun = TypeVar("Noun")
_SETTINGS = "settings"


def row_of(noun: object, table: Table) -> dict[str, Any]:
    """What the table keeps of it."""
    described = {one.name: one for one in people_set(type(noun))}
    row: dict[str, Any] = {_SETTINGS: {}}
    for name in _hints(type(noun)):
        value = getattr(noun, name)
        if name in table.c:
            plain, kind = _plain(value), cast("type[Any]", type(value))
            row[name] = kept_facts(kind, plain) if dataclasses.is_dataclass(kind) else plain
        elif described[name].is_chosen(value) if name in described else value is not None:
            row[_SETTINGS][name] = value.isoformat() if isinstance(value, datetime) else _plain(value)
    row[_SETTINGS] = kept_facts(type(noun), row[_SETTINGS])
    return row


def noun_of(kind: type[Noun], row: RowMapping) -> Noun:
    """The other way; a setting that nobody describes any more is left out."""
    facts = dict(row)
    kept = cast("dict[str, Any]", facts.pop(_SETTINGS))
    hints = _hints(kind)
    facts |= {name: value for name, value in kept.items() if name in hints}
    return kind(**{name: _restored(hints[name], value) for name, value in facts.items()})


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    """The type of each field, without what is said beside it."""
    hints = get_type_hints(kind, include_extras=True)
    return {item.name: type_of(hints[item.name]) for item in dataclasses.fields(cast("Any", kind))}


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(cast("frozenset[str]", value))
    if isinstance(value, tuple):
        return list(cast("tuple[Any, ...]", value))
    return dataclasses.asdict(cast("Any", value)) if dataclasses.is_dataclass(value) else value


def _restored(hint: Any, value: Any) -> Any:
    if isinstance(value, list):
        return (get_origin(hint) or tuple)(cast("list[Any]", value))
    if isinstance(value, dict) and dataclasses.is_dataclass(hint):
        inner, facts = _hints(cast("type", hint)), cast("dict[str, Any]", value)
        known = {name: _restored(inner[name], one) for name, one in facts.items() if name in inner}
        return cast("Any", hint)(**known)
    if hint in (datetime, datetime | None) and isinstance(value, str):
        return datetime.fromisoformat(value)
    return cast("Any", value)
