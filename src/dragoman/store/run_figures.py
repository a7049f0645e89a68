"""What runs are sorted by, and their status, as SQL of both databases.

Two of the figures are in no column. Each has an index over its expression (migration 0019): a list uses it as
long as the expression here is the one there, which a test sees. Comparing tables does not read such indexes.
Runs that are not done have an index of their own, which is used where a query says that they are not.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Float, FromClause, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from dragoman.run import RunSort, RunStatus


class RunSeconds(FunctionElement[float]):
    """Of `started_at` and `finished_at`: how long it took; -1 for what has not ended."""

    type = Float()
    inherit_cache = True


class RunCost(FunctionElement[float]):
    """Of `usage`: what it cost, as far as prices are known."""

    type = Float()
    inherit_cache = True


@compiles(RunSeconds)
def _seconds(element: RunSeconds, compiler: SQLCompiler, **how: Any) -> str:
    started, finished = (compiler.process(one, **how) for one in element.clauses)
    return f"coalesce(extract(epoch from ({finished} - {started}))::float8, -1::float8)"


@compiles(RunSeconds, "sqlite")
def _seconds_of_sqlite(element: RunSeconds, compiler: SQLCompiler, **how: Any) -> str:
    started, finished = (compiler.process(one, **how) for one in element.clauses)
    return f"coalesce((julianday({finished}) - julianday({started})) * 86400, -1)"


@compiles(RunCost)
def _cost(element: RunCost, compiler: SQLCompiler, **how: Any) -> str:
    return f"coalesce(({compiler.process(element.clauses, **how)} ->> 'cost')::float8, 0::float8)"


@compiles(RunCost, "sqlite")
def _cost_of_sqlite(element: RunCost, compiler: SQLCompiler, **how: Any) -> str:
    return f"coalesce(json_extract({compiler.process(element.clauses, **how)}, '$.cost'), 0)"


FIGURES: Mapping[RunSort, Callable[[FromClause], ColumnElement[Any]]] = {
    "newest": lambda runs: runs.c.created_at,
    "longest": lambda runs: RunSeconds(runs.c.started_at, runs.c.finished_at),
    "costliest": lambda runs: RunCost(runs.c.usage),
}


def has_status(runs: FromClause, status: RunStatus) -> ColumnElement[bool]:
    """Not done is said in words of the statement: a parameter could be anything to who plans it."""
    is_it = runs.c.status == status
    return is_it if status == "done" else is_it & (runs.c.status != literal_column("'done'"))
