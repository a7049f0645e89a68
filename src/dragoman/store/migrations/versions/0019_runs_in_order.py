"""Runs can be listed by how long they took and by what they cost."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

_SECONDS = {
    "sqlite": "coalesce((julianday(finished_at) - julianday(started_at)) * 86400, -1)",
    "postgresql": "coalesce(extract(epoch from (finished_at - started_at))::float8, -1::float8)",
}
_COST = {
    "sqlite": "coalesce(json_extract(\"usage\", '$.cost'), 0)",
    "postgresql": "coalesce((\"usage\" ->> 'cost')::float8, 0::float8)",
}


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    for name, figure in (("ix_runs_longest", _SECONDS), ("ix_runs_costliest", _COST)):
        op.create_index(name, "runs", ["workspace", sa.text(figure[dialect]), "created_at", "user"])
