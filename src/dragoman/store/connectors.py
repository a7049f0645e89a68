"""Connectors and their sealed secrets as rows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.connector import Configuration, Connector
from dragoman.errors import Conflict, NotFound
from dragoman.scope import APP
from dragoman.store import tables
from dragoman.store.database import Database
from dragoman.store.records import SealedSecret
from dragoman.store.shielded import shielded

_rows = tables.connectors
_secrets = tables.secrets
_allowances = tables.allowances
_SEALED = ("workspace", "connector_id", "user", "name", "key_id", "nonce")


class SqlConnectors:
    """Fills `ConnectorRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def list(self, workspace: str | None = None) -> Sequence[Connector]:
        query = select(_rows)
        if workspace is not None:
            query = query.where(_rows.c.workspace == workspace)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).mappings().all()
        # Sorted here: the two databases order hyphens differently.
        return sorted((_connector(row) for row in rows), key=lambda found: (found.workspace, found.slug))

    @shielded
    async def add(self, connector: Connector, secrets: Sequence[SealedSecret]) -> None:
        async with self._database.write() as connection:
            await self._check_names(connection, connector)
            await connection.execute(insert(_rows), _row(connector))
            await self._put_secrets(connection, connector, secrets)

    @shielded
    async def update(self, connector: Connector, secrets: Sequence[SealedSecret] | None = None) -> None:
        is_this = (_rows.c.workspace == connector.workspace) & (_rows.c.id == connector.id)
        async with self._database.write() as connection:
            await self._check_names(connection, connector)
            changed = await connection.execute(update(_rows).where(is_this).values(_row(connector)))
            if not changed.rowcount:
                raise NotFound(f"the connector {connector.slug!r} is gone")
            if secrets is not None:
                await connection.execute(
                    delete(_secrets).where(
                        _secrets.c.workspace == connector.workspace,
                        _secrets.c.connector_id == connector.id,
                        _secrets.c.user == "",
                    )
                )
                await self._put_secrets(connection, connector, secrets)

    @shielded
    async def remove(self, workspace: str, connector_id: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(
                delete(_rows).where(_rows.c.workspace == workspace, _rows.c.id == connector_id)
            )
            await connection.execute(delete(_allowances).where(_allowances.c.connector_id == connector_id))

    @shielded
    async def secrets(self, connector: Connector, workspace: str, user: str) -> Sequence[SealedSecret]:
        is_shared = (_secrets.c.workspace == connector.workspace) & (_secrets.c.user == "")
        is_own = (_secrets.c.workspace == workspace) & (_secrets.c.user == user)
        query = select(_secrets).where(
            _secrets.c.connector_id == connector.id, is_shared | is_own if user else is_shared
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return sorted((SealedSecret(**row) for row in rows), key=lambda found: (found.user, found.name))

    @shielded
    async def key_ids(self) -> frozenset[str]:
        async with self._database.read() as connection:
            return frozenset(await connection.scalars(select(_secrets.c.key_id).distinct()))

    @shielded
    async def put_secrets(
        self,
        connector: Connector,
        holder: tuple[str, str],
        secrets: Sequence[SealedSecret],
        removed: Sequence[str] = (),
    ) -> None:
        workspace, user = holder
        if any((one.workspace, one.user, one.connector_id) != (*holder, connector.id) for one in secrets):
            raise ValueError("a secret that was sealed for another place")
        is_this = (_rows.c.workspace == connector.workspace) & (_rows.c.id == connector.id)
        async with self._database.write() as connection:
            exists = select(_rows.c.id).where(is_this).with_for_update(read=True, key_share=True)
            if await connection.scalar(exists) is None:
                raise NotFound(f"the connector {connector.slug!r} is gone")
            if removed:
                await connection.execute(
                    delete(_secrets).where(
                        _secrets.c.workspace == workspace,
                        _secrets.c.connector_id == connector.id,
                        _secrets.c.user == user,
                        _secrets.c.name.in_(removed),
                    )
                )
            if secrets:
                rows = [_secret_row(one) for one in secrets]
                await connection.execute(self._database.upsert(_secrets), rows)

    @shielded
    async def forget_personal(self, connector: Connector) -> None:
        is_personal = (_secrets.c.connector_id == connector.id) & (_secrets.c.user != "")
        async with self._database.write() as connection:
            await connection.execute(delete(_secrets).where(is_personal))

    @shielded
    async def secret_names(self, workspace: str, user: str) -> Mapping[str, frozenset[str]]:
        query = select(_secrets.c.connector_id, _secrets.c.name).where(
            _secrets.c.workspace == workspace, _secrets.c.user == user
        )
        names: defaultdict[str, set[str]] = defaultdict(set)
        async with self._database.read() as connection:
            for connector_id, name in await connection.execute(query):
                names[connector_id].add(name)
        return {connector_id: frozenset(found) for connector_id, found in names.items()}

    @shielded
    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        query = select(_secrets).where(_secrets.c.key_id != key_id).limit(limit)
        async with self._database.read() as connection:
            return [SealedSecret(**row) for row in (await connection.execute(query)).mappings()]

    @shielded
    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        is_same = and_(*(_secrets.c[name] == getattr(before, name) for name in _SEALED))
        async with self._database.write() as connection:
            changed = await connection.execute(update(_secrets).where(is_same).values(_secret_row(after)))
        return bool(changed.rowcount)

    async def _check_names(self, connection: AsyncConnection, connector: Connector) -> None:
        """Slugs and aliases share one space of names; no index can say that.

        A name must be free in its own tier and in those above; nobody can hold one against a tier above.
        """
        if not self._database.location.is_sqlite:
            # SQLite's write lock is held already; here, writers of this workspace wait for each other.
            key = func.hashtextextended(connector.workspace, 0)
            await connection.execute(select(func.pg_advisory_xact_lock(key)))
        query = select(_rows.c.slug, _rows.c.aliases).where(
            _rows.c.workspace.in_((connector.workspace, APP)),
            _rows.c.owner.in_(("", connector.owner)),
            _rows.c.id != connector.id,
        )
        wanted = {connector.slug, *connector.aliases}
        for slug, aliases in await connection.execute(query):
            if taken := wanted & {slug, *aliases}:
                raise Conflict(
                    f"the name {min(taken)!r} is taken by the connector {slug!r}",
                    hint="choose another name, or remove that connector first",
                )

    async def _put_secrets(
        self, connection: AsyncConnection, connector: Connector, secrets: Sequence[SealedSecret]
    ) -> None:
        if any((one.workspace, one.connector_id) != (connector.workspace, connector.id) for one in secrets):
            raise ValueError("a secret that was sealed for another connector")
        if secrets:
            await connection.execute(self._database.upsert(_secrets), [_secret_row(one) for one in secrets])


def _row(connector: Connector) -> dict[str, Any]:
    return {
        "id": connector.id,
        "workspace": connector.workspace,
        "owner": connector.owner,
        "slug": connector.slug,
        # Only what somebody set: better defaults of a later Dragoman reach old connectors too.
        "configuration": connector.configuration.model_dump(mode="json", exclude_unset=True),
        "description": connector.description,
        "aliases": list(connector.aliases),
        "enabled": connector.enabled,
        "origin": connector.origin,
        "revision": connector.revision,
        "era": connector.era,
        "instructions": connector.instructions,
        "server": None if connector.server is None else dict(connector.server),
        "created_at": connector.created_at,
        "updated_at": connector.updated_at,
    }


def _connector(row: RowMapping) -> Connector:
    facts = dict(row)
    facts["configuration"] = Configuration.checked(facts["configuration"])
    facts["aliases"] = tuple(facts["aliases"])
    return Connector(**facts)


def _secret_row(secret: SealedSecret) -> Mapping[str, Any]:
    return {column.name: getattr(secret, column.name) for column in _secrets.columns}
