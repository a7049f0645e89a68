"""Threads can be pinned, and removed so that it can be undone; the list of a user's has an index."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("threads", sa.Column("pinned", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("threads", sa.Column("remove_at", sa.DateTime(timezone=True)))
    op.create_index("ix_threads_workspace_user_updated_at", "threads", ["workspace", "user", "updated_at"])
