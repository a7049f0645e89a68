"""The tools that are loaded in threads. A thread need not be written down, so nothing is referred to."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "loaded_tools",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("loaded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "user", "thread", "tool", name="pk_loaded_tools"),
    )
    op.create_index("ix_loaded_tools_loaded_at", "loaded_tools", ["loaded_at"])
