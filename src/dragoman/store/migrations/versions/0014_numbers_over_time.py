"""Numbers over time: calls, errors, durations, tokens and cost in each stretch of time."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_KEY = ("connector", "tool", "agent", "client", "model")
_COUNTS = (
    "calls", "errors", "reconnects", "runs", "failed_runs", "requests", "input_tokens", "output_tokens",
    "unpriced",
)  # fmt: skip
_DURATIONS = 24


def upgrade() -> None:
    op.create_table(
        "metric_buckets",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("span", sa.Integer(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _KEY),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _COUNTS),
        sa.Column("cost", sa.Float(), nullable=False),
        *(sa.Column(f"took_{place}", sa.BigInteger(), nullable=False) for place in range(_DURATIONS)),
        sa.PrimaryKeyConstraint(
            "workspace", "span", "level", "start", "user", *_KEY, name="pk_metric_buckets"
        ),
        sqlite_with_rowid=False,
    )
