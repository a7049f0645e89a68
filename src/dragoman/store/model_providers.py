"""Providers of language models as rows, each with its sealed key."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import RowMapping, and_, func, select, update

from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.records import ModelProvider, SealedSecret
from dragoman.store.revised_rows import NEW, put_row, remove_rows

_rows = tables.model_providers
_SEALED = ("key_id", "nonce", "ciphertext")


class SqlModelProviders(SqlAggregate):
    """Fills `ModelProviderStore`."""

    async def list(self, *workspaces: str) -> Sequence[ModelProvider]:
        query = select(_rows).where(_rows.c.workspace.in_(workspaces))
        query = query.order_by(_rows.c.created_at, _rows.c.name)
        return [_provider(row) for row in await self._database.rows(query)]

    async def put(self, provider: ModelProvider, most: int) -> bool:
        theirs = select(func.count()).select_from(_rows).filter_by(workspace=provider.workspace)
        async with self._database.write() as connection:
            if provider.revision == NEW and (await connection.scalar(theirs) or 0) >= most:
                return False
            await connection.run_sync(put_row, self._database, _rows, _row(provider), provider.revision)
        return True

    async def remove(self, workspace: str, name: str) -> None:
        is_this = (_rows.c.workspace == workspace) & (_rows.c.name == name)
        async with self._database.write() as connection:
            await connection.run_sync(remove_rows, self._database, _rows, is_this)

    async def key_ids(self) -> frozenset[str]:
        query = select(_rows.c.key_id).where(_rows.c.key_id.is_not(None)).distinct()
        return frozenset(await self._database.scalars(query))

    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        query = select(_rows).where(_rows.c.key_id.is_not(None), _rows.c.key_id != key_id).limit(limit)
        found = (_provider(row).secret for row in await self._database.rows(query))
        return [secret for secret in found if secret is not None]

    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        name = before.connector_id.partition(":")[2]  # see `ModelProvider.place`
        is_same = and_(
            _rows.c.workspace == before.workspace,
            _rows.c.name == name,
            *(_rows.c[column] == getattr(before, column) for column in ("key_id", "nonce")),
        )
        values = {column: getattr(after, column) for column in _SEALED}
        return bool(await self._database.execute(update(_rows).where(is_same).values(values)))


def _row(provider: ModelProvider) -> dict[str, Any]:
    facts = {column.name: getattr(provider, column.name, None) for column in _rows.c}
    sealed = {column: getattr(provider.secret, column, None) for column in _SEALED}
    return {**facts, **sealed}


def _provider(row: RowMapping) -> ModelProvider:
    facts: dict[str, Any] = dict(row)
    sealed = {column: facts.pop(column) for column in _SEALED}
    provider = ModelProvider(**facts)
    if sealed["key_id"] is None:
        return provider
    workspace, user, place, url = provider.place
    secret = SealedSecret(workspace=workspace, user=user, connector_id=place, name=url, **sealed)
    return replace(provider, secret=secret)
