"""What runs of a rollout asked of models whose price nobody knows: their cost is unknown, not nothing."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.add_column("rollout_samples", sa.Column("unpriced", sa.Integer(), server_default="0", nullable=False))
