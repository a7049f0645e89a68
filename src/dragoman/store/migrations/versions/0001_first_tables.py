"""The first tables: connectors, tools and their versions, secrets, results, calls, numbers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _make_connectors()
    _make_tools()
    _make_secrets()
    _make_results()
    _make_calls()
    _make_metrics()


def _of_connector(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["workspace", "connector_id"],
        ["connectors.workspace", "connectors.id"],
        name=f"fk_{table}_connectors",
        ondelete="CASCADE",
    )


def _make_connectors() -> None:
    op.create_table(
        "connectors",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("configuration", sa.JSON(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("aliases", sa.JSON(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("era", sa.Text(), nullable=True),
        sa.Column("instructions", sa.Text(), nullable=True),
        sa.Column("server", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_connectors"),
        sa.UniqueConstraint("workspace", "id", name="uq_connectors_workspace_id"),
        sa.UniqueConstraint("workspace", "slug", name="uq_connectors_workspace_slug"),
    )


def _make_tools() -> None:
    op.create_table(
        "tools",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("connector_id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("accepted_version", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("is_mcp", sa.Boolean(), nullable=False),
        sa.Column("cache_ttl", sa.Float(), nullable=False),
        sa.Column("allowed_callers", sa.JSON(), nullable=False),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "identity", "name", name="pk_tools"),
        _of_connector("tools"),
    )
    op.create_index("ix_tools_workspace_connector_id", "tools", ["workspace", "connector_id"])
    op.create_table(
        "tool_versions",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("diff", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "identity", "tool", "version", name="pk_tool_versions"),
        sa.ForeignKeyConstraint(
            ["workspace", "identity", "tool"],
            ["tools.workspace", "tools.identity", "tools.name"],
            name="fk_tool_versions_tools",
            ondelete="CASCADE",
        ),
    )


def _make_secrets() -> None:
    op.create_table(
        "secrets",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("connector_id", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "connector_id", "user", "name", name="pk_secrets"),
        _of_connector("secrets"),
    )


def _make_results() -> None:
    op.create_table(
        "results",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "handle", name="pk_results"),
    )
    op.create_index("ix_results_created_at", "results", ["created_at"])


def _make_calls() -> None:
    op.create_table(
        "calls",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=True),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("way", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("connector_id", sa.Text(), nullable=True),
        sa.Column("slug", sa.Text(), nullable=True),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("trace", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_calls"),
    )
    op.create_index("ix_calls_started_at", "calls", ["started_at"])
    op.create_index("ix_calls_workspace_user_started_at", "calls", ["workspace", "user", "started_at"])


def _make_metrics() -> None:
    op.create_table(
        "connector_metrics",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("connector_id", sa.Text(), nullable=False),
        sa.Column("numbers", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "connector_id", name="pk_connector_metrics"),
        _of_connector("connector_metrics"),
    )
