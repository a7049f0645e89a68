"""Numbers over time as rows. Counts are added in the database: several processes count the same."""

from collections.abc import Collection, Mapping, Sequence
from operator import add
from typing import Any

from sqlalchemy import Select, and_, delete, func, literal, select
from sqlalchemy.sql.elements import ColumnElement

from dragoman.store import tables
from dragoman.store.bulk_insert import BulkInsert
from dragoman.store.database import Database, SqlAggregate
from dragoman.store.records import BucketQuery, BucketSum
from dragoman.telemetry.time_buckets import MEASURES, BucketRow, level_for

_rows = tables.metric_buckets
_KEY = tuple(column.name for column in _rows.primary_key)


class SqlMetrics(SqlAggregate):
    """Fills `MetricStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._bulk = BulkInsert(_rows, unless_there=_KEY, adding=MEASURES)

    async def add(self, rows: Sequence[BucketRow]) -> None:
        if not rows:
            return
        values = [(*row[:-1], *row.counts) for row in rows]
        await self._database.transact(lambda connection: self._bulk.insert(connection, values))

    async def read(self, query: BucketQuery) -> Sequence[BucketSum]:
        """Two selects where shared ones are asked for, since one with `or` would read the whole table."""
        sums: dict[tuple[int, str], tuple[float, ...]] = {}
        async with self._database.read() as connection:
            for whose in _whose(query):
                statement = _select(query, *whose)
                for at, of, *counts in (await connection.execute(statement)).all():
                    found = sums.get((at, of))
                    sums[at, of] = tuple(counts) if found is None else tuple(map(add, found, counts))
        return [
            BucketSum(int(at), of, tuple(map(float, counts))) for (at, of), counts in sorted(sums.items())
        ]

    async def names(self, query: BucketQuery, most: int) -> Collection[str]:
        found: set[str] = set()
        async with self._database.read() as connection:
            for whose in _whose(query):
                statement = select(_group(query)).where(*_conditions(query, *whose)).distinct().limit(most)
                found.update((await connection.execute(statement)).scalars())
        return sorted(found)[:most]

    async def forget(self, before: Mapping[int, int]) -> None:
        for span, start in before.items():
            await self._database.remove_much(delete(_rows).where(_rows.c.span == span, _rows.c.start < start))


def _whose(query: BucketQuery) -> list[tuple[int, ColumnElement[bool]]]:
    """The levels that are read, and of each whose rows."""
    dimensions = {*query.only, *([query.split] if query.split else ())} - {"user"}
    own = _rows.c.workspace == query.workspace
    if query.user is not None:
        own = and_(own, _rows.c.user == query.user)
    found = [(level_for(dimensions), own)]
    if query.shared:
        # What nobody in particular did: connections that all share were opened anew. Who sees everything of
        # the workspace has read those of the workspace.
        theirs = {"", *([] if query.user is None else [query.workspace])}
        shared = and_(
            _rows.c.workspace.in_(sorted(theirs)),
            _rows.c.user == "",
            _rows.c.connector.in_(sorted(query.shared)),
        )
        found.append((level_for({*dimensions, "connector"}), shared))
    return found


def _select(query: BucketQuery, level: int, whose: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    sums = [func.sum(_rows.c[name]) for name in query.measures]
    statement = select(_at(query).label("at"), _group(query).label("of"), *sums).where(
        *_conditions(query, level, whose)
    )
    # By nothing that is constant where something is not: SQLite would sort by it too.
    told = [name for name, given in (("at", query.step), ("of", query.split)) if given is not None]
    return statement.group_by(*(told or ["at"]))


def _at(query: BucketQuery) -> ColumnElement[int]:
    if query.step is None:
        return literal(0)
    return _rows.c.start if query.step == query.span else _rows.c.start - _rows.c.start % query.step


def _group(query: BucketQuery) -> ColumnElement[str]:
    return literal("") if query.split is None else _rows.c[query.split]


def _conditions(query: BucketQuery, level: int, whose: ColumnElement[bool]) -> list[ColumnElement[bool]]:
    return [
        _rows.c.span == query.span,
        _rows.c.level == level,
        _rows.c.start >= query.start,
        _rows.c.start < query.end,
        whose,
        *(_rows.c[name].in_(sorted(values)) for name, values in query.only.items()),
    ]
