"""What users may use at most is called `limits` in every table, and in the preferences of users."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for table in ("workspaces", "users"):
        op.execute(f"ALTER TABLE {table} RENAME COLUMN bounds TO limits")
    users = sa.table(
        "users", sa.column("workspace"), sa.column("id"), sa.column("preferences", sa.JSON(none_as_null=True))
    )
    connection = op.get_bind()
    for workspace, id, preferences in connection.execute(sa.select(users)).all():
        preferences["limits"] = preferences.pop("bounds")
        is_user = (users.c.workspace == workspace) & (users.c.id == id)
        connection.execute(users.update().where(is_user).values(preferences=preferences))
