"""Bundles as rows: one each, with its tools and their overrides as one document."""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import RowMapping, func, select

from dragoman.bundle import Bundle, BundleEntry
from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.later_fields import KeptDocument, with_later
from dragoman.store.revised_rows import NEW, put_row, remove_rows

_rows = tables.bundles


class SqlBundles(SqlAggregate):
    """Fills `BundleStore`."""

    async def list(self) -> Sequence[Bundle]:
        query = select(_rows).order_by(_rows.c.workspace, _rows.c.owner, _rows.c.name)
        return [_bundle(row) for row in await self._database.rows(query)]

    async def find(self, workspace: str, owner: str, name: str) -> Bundle | None:
        query = select(_rows).filter_by(workspace=workspace, owner=owner, name=name)
        row = await self._database.row(query)
        return _bundle(row) if row else None

    async def put(self, bundle: Bundle, most: int) -> bool:
        theirs = (
            select(func.count()).select_from(_rows).filter_by(workspace=bundle.workspace, owner=bundle.owner)
        )
        async with self._database.write() as connection:
            if bundle.revision == NEW and (await connection.scalar(theirs) or 0) >= most:
                return False
            await connection.run_sync(put_row, self._database, _rows, _row(bundle), bundle.revision)
        return True

    async def remove(self, workspace: str, owner: str, name: str) -> None:
        is_this = (_rows.c.workspace == workspace) & (_rows.c.owner == owner) & (_rows.c.name == name)
        async with self._database.write() as connection:
            await connection.run_sync(remove_rows, self._database, _rows, is_this)


def _row(bundle: Bundle) -> dict[str, Any]:
    facts: dict[str, Any] = {column.name: getattr(bundle, column.name) for column in _rows.c}
    facts["tools"] = KeptDocument(
        [entry.written() for entry in bundle.tools], lambda stored: _entries(bundle, stored)
    )
    facts["resources"] = [*bundle.resources]
    facts["hooks"] = [*bundle.hooks]
    facts["capabilities"] = None if bundle.capabilities is None else sorted(bundle.capabilities)
    return facts


def _entries(bundle: Bundle, stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    before = {_entry(facts).key: facts for facts in stored}
    return [
        with_later(entry.written(), BundleEntry, before.get(entry.key, entry.written()))
        for entry in bundle.tools
    ]


def _entry(facts: dict[str, Any]) -> BundleEntry:
    return BundleEntry.model_validate(facts, extra="ignore")


def _bundle(row: RowMapping) -> Bundle:
    facts: dict[str, Any] = dict(row)
    facts["tools"] = tuple(map(_entry, cast("list[dict[str, Any]]", facts["tools"])))
    facts["resources"] = tuple(facts["resources"])
    facts["hooks"] = tuple(facts["hooks"])
    words: list[str] | None = facts["capabilities"]
    facts["capabilities"] = None if words is None else frozenset(words)
    return Bundle(**facts)
