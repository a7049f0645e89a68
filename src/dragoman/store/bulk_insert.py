"""Many rows of one table in few statements. Knows no table of its own.

A statement for each row is dear twice: SQLAlchemy makes every row ready by itself, and SQLite's thread lets
go of the interpreter for every row, which a busy event loop is slow to hand back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Dialect, Table

from dragoman.store.prepared_statement import driver_of

AT_ONCE = 64  # rows may be made ready on the event loop: more at once would be felt by calls


class BulkInsert:
    """Inserts rows whose values come in the order of the table's columns.

    A row whose values in `unless_there` exist already is left out. Where columns are `adding`, it is added to
    what exists; those that are `replacing` take the place of what exists. No two rows of one call may then be
    the same.
    """

    def __init__(
        self,
        table: Table,
        unless_there: Sequence[str] = (),
        adding: Sequence[str] = (),
        replacing: Sequence[str] = (),
    ) -> None:
        self._table = table
        self._unless_there = unless_there
        self._adding = adding
        self._replacing = replacing
        self._forms: dict[str, _Form] = {}

    def insert(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> None:
        form, start, driver = self._form(connection.dialect), 0, driver_of(connection)
        while left := len(rows) - start:
            # Powers of two: drivers keep every statement that they have met, and each number of rows is one.
            part = rows[start : start + min(AT_ONCE, 1 << left.bit_length() - 1)]
            start += len(part)
            statement = form.head + ",".join([form.one] * len(part)) + form.tail
            if driver is None:
                connection.exec_driver_sql(statement, form.values(part))
            else:
                driver.execute(statement, form.values(part))

    def _form(self, dialect: Dialect) -> "_Form":
        form = self._forms.get(dialect.driver)
        if form is None:
            form = self._forms[dialect.driver] = self._prepared(dialect)
        return form

    def _prepared(self, dialect: Dialect) -> "_Form":
        quoted = dialect.identifier_preparer
        table, columns = quoted.format_table(self._table), self._table.columns
        names = ", ".join(quoted.format_column(column) for column in columns)
        keys = ", ".join(quoted.quote(name) for name in self._unless_there)
        sign = "?" if dialect.paramstyle == "qmark" else "%s"
        sums = [f"{one} = {table}.{one} + excluded.{one}" for one in map(quoted.quote, self._adding)]
        news = [f"{one} = excluded.{one}" for one in map(quoted.quote, self._replacing)]
        then = f"UPDATE SET {', '.join(sums + news)}" if sums or news else "NOTHING"
        return _Form(
            head=f"INSERT INTO {table} ({names}) VALUES ",  # noqa: S608 - names of our own
            one=f"({','.join([sign] * len(columns))})",
            tail=f" ON CONFLICT ({keys}) DO {then}" if keys else "",
            processes=[
                (place, process)
                for place, column in enumerate(columns)
                if (process := column.type.dialect_impl(dialect).bind_processor(dialect)) is not None
            ],
        )


@dataclass(frozen=True, slots=True)
class _Form:
    """The parts of a statement for one driver, and how values become those of the database."""

    head: str
    one: str
    tail: str
    processes: Sequence[tuple[int, Callable[[Any], Any]]]

    def values(self, rows: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        values: list[Any] = []
        for row in rows:
            ready = [*row]
            for place, process in self.processes:
                ready[place] = process(ready[place])
            values += ready
        return tuple(values)
