"""What agents asked of models whose price nobody knows: their cost is unknown, not nothing."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.add_column("agent_numbers", sa.Column("unpriced", sa.Integer(), server_default="0", nullable=False))
