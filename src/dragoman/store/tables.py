"""The tables. `migrations/` makes them; a test compares the two.

Every row carries its workspace, and foreign keys do too: a row cannot refer across the border.
"""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from dragoman.store.columns import Document, FreeText, Moment

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _of_connector() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["workspace", "connector_id"], ["connectors.workspace", "connectors.id"], ondelete="CASCADE"
    )


connectors = Table(
    "connectors",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("slug", Text, nullable=False),
    Column("configuration", Document, nullable=False),
    Column("description", FreeText, nullable=False),
    Column("aliases", Document, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("era", Text),
    Column("instructions", FreeText),
    Column("server", Document),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("workspace", "id"),
    UniqueConstraint("workspace", "slug"),
)

tools = Table(
    "tools",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("identity", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("connector_id", Text, nullable=False),
    Column("slug", Text, nullable=False),
    Column("definition", Document, nullable=False),
    Column("version", Integer, nullable=False),
    Column("accepted_version", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("is_mcp", Boolean, nullable=False),
    Column("cache_ttl", Float, nullable=False),
    Column("allowed_callers", Document, nullable=False),
    Column("first_seen", Moment, nullable=False),
    _of_connector(),
    Index(None, "workspace", "connector_id"),
)

tool_versions = Table(
    "tool_versions",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("identity", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("fingerprint", Text, nullable=False),
    Column("definition", Document, nullable=False),
    Column("diff", FreeText, nullable=False),
    Column("seen_at", Moment, nullable=False),
    ForeignKeyConstraint(
        ["workspace", "identity", "tool"],
        ["tools.workspace", "tools.identity", "tools.name"],
        ondelete="CASCADE",
    ),
)

secrets = Table(
    "secrets",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("connector_id", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("nonce", LargeBinary, nullable=False),
    Column("ciphertext", LargeBinary, nullable=False),
    _of_connector(),
)

results = Table(
    "results",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("handle", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("tool", FreeText, nullable=False),
    Column("content_type", FreeText, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False, index=True),
)

# No foreign key: what was called stays on record when the connector is gone.
calls = Table(
    "calls",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("thread", FreeText),
    Column("agent", FreeText),
    Column("way", Text, nullable=False),
    Column("tool", FreeText, nullable=False),
    Column("connector_id", Text),
    Column("slug", Text),
    Column("ok", Boolean, nullable=False),
    Column("code", Text),
    Column("message", FreeText),
    Column("duration_ms", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("started_at", Moment, nullable=False, index=True),
    Column("trace", Document, nullable=False),
    Index(None, "workspace", "user", "started_at"),
)

connector_metrics = Table(
    "connector_metrics",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("connector_id", Text, primary_key=True),
    Column("numbers", Document, nullable=False),
    _of_connector(),
)
