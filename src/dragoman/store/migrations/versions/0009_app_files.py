"""Which connectors the app files of each living process describe."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "app_files",
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("slugs", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("process", name="pk_app_files"),
    )
