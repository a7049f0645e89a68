"""Recipes: how jobs were done, for later runs of the same connector's agent."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "recipes",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("connector_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tools", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_recipes"),
        sa.ForeignKeyConstraint(
            ["connector_id"], ["connectors.id"], name="fk_recipes_connectors", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_recipes_workspace_owner", "recipes", ["workspace", "owner"])
