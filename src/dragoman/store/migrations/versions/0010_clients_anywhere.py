"""Sessions of MCP clients, and what is taken once, for whichever process is asked."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "client_sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("capabilities", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("lists", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("watched", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_client_sessions"),
    )
    op.create_index("ix_client_sessions_used_at", "client_sessions", ["used_at"])
    op.create_index("ix_client_sessions_workspace_user", "client_sessions", ["workspace", "user"])
    op.create_table(
        "one_time_values",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_one_time_values"),
    )
    op.create_index("ix_one_time_values_expires_at", "one_time_values", ["expires_at"])
    op.create_index("ix_one_time_values_workspace_user", "one_time_values", ["workspace", "user"])
