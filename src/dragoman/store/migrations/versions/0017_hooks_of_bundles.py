"""Bundles have hooks of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("bundles", sa.Column("hooks", sa.JSON(), server_default="[]", nullable=False))
