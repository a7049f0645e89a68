"""Statements that are executed with every run and every call: compiled once, then given to SQLite as text.

To make a statement ready each time costs SQLAlchemy several times what SQLite takes to execute it. Only in
`Database.transact` on SQLite; elsewhere it is executed as SQLAlchemy does it. Knows no table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Dialect, Executable, Select
from sqlalchemy.sql.compiler import SQLCompiler

Facts = Mapping[str, Any]
Process = Callable[[Any], Any]


def driver_of(connection: Connection) -> Any | None:
    """SQLite's own connection, where its statements are plain calls; None where they are awaited."""
    return connection.connection.driver_connection if connection.dialect.driver == "pysqlite" else None


class PreparedStatement:
    """`lists` are the names of its expanding parameters: lists of values, or of tuples of values."""

    def __init__(self, clause: Executable, *lists: str) -> None:
        self._clause = clause
        self._lists = lists
        self._forms: dict[tuple[int, ...], _CompiledForm] = {}

    def rows(self, connection: Connection, facts: Facts) -> Sequence[Sequence[Any]]:
        """All that it finds."""
        driver = driver_of(connection)
        if driver is None:
            return connection.execute(self._clause, facts).all()
        form = self._form(connection.dialect, facts)
        found: Sequence[Sequence[Any]] = driver.execute(form.text, form.values(facts)).fetchall()
        return [form.result(row) for row in found] if form.results else found

    def run(self, connection: Connection, *each: Facts) -> None:
        """Once with each of these; all have the same names, and lists of the same length."""
        driver = driver_of(connection)
        if driver is None:
            connection.execute(self._clause, each)
            return
        form = self._form(connection.dialect, each[0])
        # In one call: between two, whoever else is at work takes the interpreter and is slow to hand it back.
        driver.executemany(form.text, [form.values(facts) for facts in each])

    def _form(self, dialect: Dialect, facts: Facts) -> "_CompiledForm":
        """A list of another length makes another statement."""
        lengths = tuple(len(facts[name]) for name in self._lists)
        form = self._forms.get(lengths)
        if form is None:
            form = self._forms[lengths] = _compiled(self._clause, dialect, facts, self._lists)
        return form


@dataclass(frozen=True, slots=True)
class _CompiledForm:
    """`order`: for each parameter its name, its place where the name is of a list, and how it is written.

    `results`: the places of the values that are read otherwise than they are stored.
    """

    text: str
    lists: Mapping[str, bool]
    order: Sequence[tuple[str, int | None, Process | None]]
    constants: Facts
    results: Sequence[tuple[int, Process]]

    def values(self, facts: Facts) -> list[Any]:
        flat: dict[str, list[Any]] = {}
        for name, is_of_tuples in self.lists.items():
            given = facts[name]
            flat[name] = [value for one in given for value in one] if is_of_tuples else given
        values: list[Any] = []
        for name, place, process in self.order:
            if place is not None:
                value = flat[name][place]
            else:
                value = facts[name] if name in facts else self.constants[name]
            values.append(value if process is None else process(value))
        return values

    def result(self, row: Sequence[Any]) -> Sequence[Any]:
        ready = [*row]
        for place, process in self.results:
            ready[place] = process(ready[place])
        return ready


def _compiled(clause: Executable, dialect: Dialect, facts: Facts, lists: Sequence[str]) -> _CompiledForm:
    compiled = cast("SQLCompiler", cast("Any", clause).compile(dialect=dialect, column_keys=[*facts]))
    state = compiled.construct_expanded_state(facts, escape_names=False)
    processes: dict[str, Process | None] = {
        name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in compiled.binds.items()
    }
    processes |= state.processors
    places: dict[str, tuple[str, int]] = {
        part: (name, place) for name in lists for place, part in enumerate(state.parameter_expansion[name])
    }

    def ordered(name: str) -> tuple[str, int | None, Process | None]:
        of, place = places.get(name, (name, None))
        return of, place, processes.get(name)

    columns = clause.selected_columns if isinstance(clause, Select) else ()
    return _CompiledForm(
        text=state.statement,
        lists={name: bool(facts[name]) and isinstance(facts[name][0], tuple) for name in lists},
        order=[ordered(name) for name in state.positiontup or ()],
        constants={name: value for name, value in state.parameters.items() if name not in facts},
        results=[
            (place, process)
            for place, column in enumerate(columns)
            if (process := column.type.dialect_impl(dialect).result_processor(dialect, None)) is not None
        ],
    )
