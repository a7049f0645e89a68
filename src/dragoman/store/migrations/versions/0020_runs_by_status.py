"""Runs that failed, were cancelled or go on are found among many that are done."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    is_not_done = sa.text("status <> 'done'")
    op.create_index(
        "ix_runs_not_done",
        "runs",
        ["workspace", "status", "created_at", "user"],
        sqlite_where=is_not_done,
        postgresql_where=is_not_done,
    )
