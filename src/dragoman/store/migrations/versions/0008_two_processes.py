"""What lets two processes write the same rows: how often each was written, and what changed."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_REVISED = ("tools", "workspaces", "users", "api_keys", "threads", "agents", "rollout_states")


def upgrade() -> None:
    for table in _REVISED:
        op.add_column(table, sa.Column("revision", sa.Integer(), nullable=False, server_default="1"))
    op.create_table(
        "changes",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_transaction_id", "changes", ["transaction_id"])
    op.create_index("ix_changes_at", "changes", ["at"])
