"""Rows that are read, changed and written again, perhaps by two processes at once: nobody overwrites.

The one way in which such a row is written. Who writes says which revision was read; where the row has another
by now, nothing is written and `Outdated` is raised. What is written is noted for the other processes.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, insert, select, update

from dragoman.errors import NotFound, Outdated
from dragoman.store.changes import change_of, note
from dragoman.store.database import Database
from dragoman.store.later_fields import KeptDocument
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.tables import Told

NEW = 0
"""The revision of what was never written."""
_UNTOLD = frozenset({"revision", "updated_at"})


def put_row(
    connection: Connection,
    database: Database,
    table: Table,
    row: Mapping[str, Any],
    read: int,
    apart: frozenset[str] = frozenset(),
) -> None:
    """Writes a row whose revision was `read`. Columns in `apart` are left as they are when it is there.

    `Outdated` when somebody else wrote it meanwhile, `NotFound` when somebody removed it.
    """
    if read == NEW:
        values = {name: _document(value) for name, value in row.items()}
        _inserted(table, frozenset(row)).run(connection, {**values, "revision": row.get("revision") or 1})
        note(connection, database, change_of(table, row, "added"))
        return
    stored = _locked(connection, table, row)
    if stored is None:
        raise NotFound("it was removed meanwhile", hint="look again at what there is")
    if stored["revision"] != read:
        raise outdated()
    values = {
        name: value.beside(stored[name]) if isinstance(value, KeptDocument) else value
        for name, value in row.items()
        if name not in apart
    }
    connection.execute(update(table).where(_is(table, row)).values({**values, "revision": read + 1}))
    details = {"changed": sorted(_changed(stored, values))}
    note(connection, database, change_of(table, row, "updated", details))


def remove_rows(
    connection: Connection, database: Database, table: Table, are_meant: ColumnElement[bool]
) -> int:
    """Removes rows of any revision; how many there were."""
    gone = delete(table).where(are_meant).returning(*table.primary_key, *_told_columns(table))
    rows = [dict(row) for row in connection.execute(gone).mappings()]
    names = ({"name": row["name"]} if "name" in row else {} for row in rows)
    changes = [change_of(table, row, "removed", name) for row, name in zip(rows, names, strict=True)]
    note(connection, database, *changes)
    return len(rows)


@cache
def _inserted(table: Table, given: frozenset[str]) -> PreparedStatement:
    """Of another set of columns it is another statement: those that are not given have their defaults."""
    return PreparedStatement(insert(table))


def _document(value: Any) -> Any:
    return value.document if isinstance(value, KeptDocument) else value


def outdated() -> Outdated:
    return Outdated(
        "somebody else has changed this meanwhile: nothing was written",
        hint="look at it as it is now, then change it again",
    )


def _told_columns(table: Table) -> list[Column[Any]]:
    told: Told = table.info["told"]
    names = {told.workspace, told.user, told.subject, "name"} - {*table.primary_key.columns.keys()}
    return [table.c[name] for name in sorted(names) if name in table.c]


def _locked(connection: Connection, table: Table, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    query = select(table).where(_is(table, row)).with_for_update()
    found = connection.execute(query).mappings().first()
    return None if found is None else dict(found)


def _is(table: Table, row: Mapping[str, Any]) -> ColumnElement[bool]:
    return and_(*(column == row[column.name] for column in table.primary_key))


def _changed(stored: Mapping[str, Any], values: Mapping[str, Any]) -> set[str]:
    """Names of the fields that are new; those of a document as `column.field`."""
    names: set[str] = set()
    for name, value in values.items():
        before = stored[name]
        if name in _UNTOLD or before == value:
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", value)
            names |= {f"{name}.{key}" for key in {*old, *new} if old.get(key) != new.get(key)}
        else:
            names.add(name)
    return names
