"""Questions say which connector's server asks them, and may be an address to go to."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("questions", sa.Column("connector", sa.Text(), nullable=False, server_default=""))
    op.add_column("questions", sa.Column("url", sa.Text()))
