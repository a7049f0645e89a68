"""Through which key or client a person was asked: a yes for longer holds for that one."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("approvals", sa.Column("key", sa.Text()))
    # Through what a yes came before is not known: it holds for no key and no client.
    with op.batch_alter_table("allowances") as table:
        table.add_column(sa.Column("key", sa.Text(), nullable=False, server_default=""))
        table.drop_constraint("pk_allowances", type_="primary")
        table.create_primary_key(
            "pk_allowances", ["workspace", "user", "connector_id", "tool", "thread", "key"]
        )
