"""Many users: who they are, what they chose and allowed, what was used and done.

Two users of one workspace may give their own connectors the same name, so tools belong to a connector.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _widen_connectors()
    _move_tools()
    _free_secrets()
    _make_people()
    _make_keys()
    _make_threads()
    _make_approvals()
    _make_usage()
    _make_audit()
    _make_flows()


def _text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _document(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(), nullable=nullable)


def _of_connector(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["workspace", "connector_id"],
        ["connectors.workspace", "connectors.id"],
        name=f"fk_{table}_connectors",
        ondelete="CASCADE",
    )


def _of_connector_of_any(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["connector_id"], ["connectors.id"], name=f"fk_{table}_connectors", ondelete="CASCADE"
    )


def _free_secrets() -> None:
    """A user's secret is the user's workspace's, also for a connector of the app."""
    with op.batch_alter_table("secrets") as table:
        table.drop_constraint("fk_secrets_connectors", type_="foreignkey")
        table.create_foreign_key(
            "fk_secrets_connectors", "connectors", ["connector_id"], ["id"], ondelete="CASCADE"
        )


def _widen_connectors() -> None:
    with op.batch_alter_table("connectors") as table:
        table.add_column(sa.Column("origin", sa.Text(), nullable=False, server_default="operator"))
        table.drop_constraint("uq_connectors_workspace_slug", type_="unique")
        table.create_unique_constraint("uq_connectors_workspace_owner_slug", ["workspace", "owner", "slug"])
    op.execute("UPDATE connectors SET origin = 'files' WHERE owner = ''")
    with op.batch_alter_table("connectors") as table:
        table.alter_column("origin", server_default=None)


_TOOL = (
    "workspace, connector_id, identity, name, slug, definition, version, accepted_version, fingerprint,"
    " enabled, is_mcp, cache_ttl, allowed_callers, first_seen"
)


def _move_tools() -> None:
    """Copied aside, made anew, copied back: SQLite cannot change a primary key."""
    op.execute("CREATE TABLE old_tools AS SELECT * FROM tools")
    op.execute(
        "CREATE TABLE old_versions AS SELECT v.*, t.connector_id FROM tool_versions v"
        " JOIN tools t ON t.workspace = v.workspace AND t.identity = v.identity AND t.name = v.tool"
    )
    op.drop_table("tool_versions")
    op.drop_table("tools")
    op.create_table(
        "tools",
        _text("workspace"),
        _text("connector_id"),
        _text("identity"),
        _text("name"),
        _text("slug"),
        _document("definition"),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("accepted_version", sa.Integer(), nullable=False),
        _text("fingerprint"),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("is_mcp", sa.Boolean(), nullable=False),
        sa.Column("cache_ttl", sa.Float(), nullable=False),
        _document("allowed_callers"),
        _document("required_capabilities"),
        _text("approval", nullable=True),
        sa.Column("cost", sa.Float(), nullable=False),
        _moment("first_seen"),
        sa.PrimaryKeyConstraint("workspace", "connector_id", "identity", "name", name="pk_tools"),
        _of_connector("tools"),
    )
    op.create_table(
        "tool_versions",
        _text("workspace"),
        _text("connector_id"),
        _text("identity"),
        _text("tool"),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        _text("fingerprint"),
        _document("definition"),
        _text("diff"),
        _moment("seen_at"),
        sa.PrimaryKeyConstraint(
            "workspace", "connector_id", "identity", "tool", "version", name="pk_tool_versions"
        ),
        sa.ForeignKeyConstraint(
            ["workspace", "connector_id", "identity", "tool"],
            ["tools.workspace", "tools.connector_id", "tools.identity", "tools.name"],
            name="fk_tool_versions_tools",
            ondelete="CASCADE",
        ),
    )
    op.execute(
        f"INSERT INTO tools ({_TOOL}, required_capabilities, cost) SELECT {_TOOL}, '[]', 0.0 FROM old_tools"  # noqa: S608
    )
    columns = "workspace, connector_id, identity, tool, version, fingerprint, definition, diff, seen_at"
    op.execute(f"INSERT INTO tool_versions ({columns}) SELECT {columns} FROM old_versions")  # noqa: S608
    op.drop_table("old_tools")
    op.drop_table("old_versions")


def _make_people() -> None:
    op.create_table(
        "workspaces",
        _text("id"),
        _text("name"),
        _text("approval"),
        _document("bounds"),
        _moment("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_workspaces"),
    )
    op.create_table(
        "users",
        _text("workspace"),
        _text("id"),
        _text("name"),
        _text("role"),
        _document("capabilities"),
        _document("bounds"),
        _document("preferences"),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        _text("external", nullable=True),
        _moment("created_at"),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_users"),
        sa.ForeignKeyConstraint(
            ["workspace"], ["workspaces.id"], name="fk_users_workspaces", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("workspace", "name", name="uq_users_workspace_name"),
        sa.UniqueConstraint("external", name="uq_users_external"),
    )


def _make_keys() -> None:
    op.create_table(
        "api_keys",
        _text("id"),
        _text("workspace"),
        _text("user"),
        _text("name"),
        _text("hash"),
        _text("hint"),
        _document("scopes"),
        _document("capabilities", nullable=True),
        _text("way"),
        _moment("created_at"),
        _moment("expires_at", nullable=True),
        _moment("revoked_at", nullable=True),
        _moment("last_used_at", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(
            ["workspace", "user"],
            ["users.workspace", "users.id"],
            name="fk_api_keys_users",
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
    )
    op.create_index("ix_api_keys_workspace_user", "api_keys", ["workspace", "user"])


def _make_threads() -> None:
    op.create_table(
        "threads",
        _text("workspace"),
        _text("user"),
        _text("id"),
        _text("title"),
        _document("connectors", nullable=True),
        _moment("created_at"),
        _moment("updated_at"),
        sa.PrimaryKeyConstraint("workspace", "user", "id", name="pk_threads"),
    )


def _make_approvals() -> None:
    op.create_table(
        "approvals",
        _text("workspace"),
        _text("id"),
        _text("user"),
        _text("thread", nullable=True),
        _text("agent", nullable=True),
        _text("way"),
        _text("connector_id"),
        _text("slug"),
        _text("tool"),
        sa.Column("version", sa.Integer(), nullable=False),
        _text("fingerprint"),
        _text("arguments_hash"),
        _text("reason"),
        sa.Column("arguments", sa.LargeBinary(), nullable=False),
        sa.Column("only_once", sa.Boolean(), nullable=False),
        _text("status"),
        _text("answer", nullable=True),
        _text("answered_by", nullable=True),
        _moment("answered_at", nullable=True),
        _moment("created_at"),
        _moment("expires_at"),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_approvals"),
    )
    op.create_index("ix_approvals_expires_at", "approvals", ["expires_at"])
    op.create_index("ix_approvals_workspace_user_status", "approvals", ["workspace", "user", "status"])
    op.create_table(
        "allowances",
        _text("workspace"),
        _text("user"),
        _text("connector_id"),
        _text("tool"),
        _text("thread"),
        _text("fingerprint"),
        _text("approval_id"),
        _moment("created_at"),
        sa.PrimaryKeyConstraint("workspace", "user", "connector_id", "tool", "thread", name="pk_allowances"),
    )


def _make_usage() -> None:
    op.create_table(
        "usage",
        _text("workspace"),
        _text("subject"),
        _text("measure"),
        sa.Column("window", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("amount", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "subject", "measure", "window", name="pk_usage"),
    )
    op.create_table(
        "leases",
        _text("workspace"),
        _text("subject"),
        _text("id"),
        _moment("expires_at"),
        sa.PrimaryKeyConstraint("workspace", "subject", "id", name="pk_leases"),
    )


def _make_audit() -> None:
    op.create_table(
        "audit",
        _text("workspace"),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        _moment("time"),
        _text("user"),
        _text("agent", nullable=True),
        _text("way"),
        _text("action"),
        _text("subject"),
        _text("outcome"),
        _text("arguments_hash", nullable=True),
        _document("details"),
        _text("previous"),
        _text("hash"),
        sa.PrimaryKeyConstraint("workspace", "number", name="pk_audit"),
    )
    op.create_table(
        "audit_heads",
        _text("workspace"),
        sa.Column("number", sa.Integer(), nullable=False),
        _text("hash"),
        sa.Column("forgotten_number", sa.Integer(), nullable=False),
        _text("forgotten_hash"),
        sa.PrimaryKeyConstraint("workspace", name="pk_audit_heads"),
    )


def _make_flows() -> None:
    op.create_table(
        "authorization_flows",
        _text("state_hash"),
        _text("workspace"),
        _text("user"),
        _text("connector_id"),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        _moment("expires_at"),
        sa.PrimaryKeyConstraint("state_hash", name="pk_authorization_flows"),
        _of_connector_of_any("authorization_flows"),
    )
    op.create_index("ix_authorization_flows_expires_at", "authorization_flows", ["expires_at"])
