"""Settings of workspaces, users, keys and agents that have no column of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    for table in ("workspaces", "users", "api_keys", "agents"):
        op.add_column(
            table, sa.Column("settings", sa.JSON(none_as_null=True), nullable=False, server_default="{}")
        )
