"""Recipes as rows."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping, func, select

from dragoman.recipe import Recipe
from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.revised_rows import NEW, put_row, remove_rows

_rows = tables.recipes


class SqlRecipes(SqlAggregate):
    """Fills `RecipeStore`."""

    async def list(self, workspace: str, user: str, connector_id: str | None = None) -> Sequence[Recipe]:
        query = select(_rows).where(_rows.c.workspace == workspace, _rows.c.owner.in_(("", user)))
        if connector_id is not None:
            query = query.where(_rows.c.connector_id == connector_id)
        query = query.order_by(_rows.c.created_at.desc(), _rows.c.id)
        return [_recipe(row) for row in await self._database.rows(query)]

    async def find(self, workspace: str, recipe: str) -> Recipe | None:
        row = await self._database.row(select(_rows).filter_by(workspace=workspace, id=recipe))
        return _recipe(row) if row else None

    async def put(self, recipe: Recipe, most: int) -> bool:
        theirs = (
            select(func.count()).select_from(_rows).filter_by(workspace=recipe.workspace, owner=recipe.owner)
        )
        async with self._database.write() as connection:
            if recipe.revision == NEW and (await connection.scalar(theirs) or 0) >= most:
                return False
            row = {**asdict(recipe), "tools": [*recipe.tools]}
            await connection.run_sync(put_row, self._database, _rows, row, recipe.revision)
        return True

    async def remove(self, workspace: str, recipe: str) -> None:
        is_this = (_rows.c.workspace == workspace) & (_rows.c.id == recipe)
        async with self._database.write() as connection:
            await connection.run_sync(remove_rows, self._database, _rows, is_this)


def _recipe(row: RowMapping) -> Recipe:
    facts: dict[str, Any] = dict(row)
    facts["tools"] = tuple(facts["tools"])
    return Recipe(**facts)
