"""Numbers over time as rows. Counts are added in the database: several processes count the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, and_, delete, func, literal, or_, select
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
        async with self._database.write() as connection:
            await self._bulk.insert(connection, [(*row[:-1], *row.counts) for row in rows])

    async def read(self, query: BucketQuery) -> Sequence[BucketSum]:
        async with self._database.read() as connection:
            found = (await connection.execute(_select(query))).all()
        return [BucketSum(int(row[0]), str(row[1]), tuple(map(float, row[2:]))) for row in found]

    async def forget(self, before: Mapping[int, int]) -> None:
        for span, start in before.items():
            await self._database.remove_much(delete(_rows).where(_rows.c.span == span, _rows.c.start < start))


def _select(query: BucketQuery) -> Select[*tuple[Any, ...]]:
    start: ColumnElement[int] = (
        literal(0) if query.step is None else _rows.c.start - _rows.c.start % query.step
    )
    group: ColumnElement[str] = literal("") if query.split is None else _rows.c[query.split]
    dimensions = {*query.only, *([query.split] if query.split else ())} - {"user"}
    sums = [func.sum(_rows.c[name]) for name in MEASURES]
    chosen = [_rows.c[name].in_(sorted(values)) for name, values in query.only.items()]
    statement = select(start.label("at"), group.label("of"), *sums).where(
        _rows.c.span == query.span,
        _rows.c.level == level_for({*dimensions, *(["connector"] if query.shared else ())}),
        _rows.c.start >= query.start,
        _rows.c.start < query.end,
        _whose(query),
        *chosen,
    )
    return statement.group_by("at", "of").order_by("at", "of")


def _whose(query: BucketQuery) -> ColumnElement[bool]:
    own = _rows.c.workspace == query.workspace
    if query.user is not None:
        own = and_(own, _rows.c.user == query.user)
    if not query.shared:
        return own
    # What nobody in particular did: connections that all share were opened anew.
    shared = and_(
        _rows.c.workspace.in_({query.workspace, ""}),
        _rows.c.user == "",
        _rows.c.connector.in_(sorted(query.shared)),
    )
    return or_(own, shared)
