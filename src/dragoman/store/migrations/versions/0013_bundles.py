"""Bundles: named choices of tools, each shown as its owner wants it."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "bundles",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("instructions", sa.Text(), nullable=False),
        sa.Column("view", sa.Text(), nullable=True),
        sa.Column("capabilities", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("tools", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("resources", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("workspace", "owner", "name", name="pk_bundles"),
    )
