"""The tables. `migrations/` makes them; a test compares the two.

Every row carries its workspace, and foreign keys do too where they can: a row cannot refer across the border.

A row that is read, changed and written again has a `revision`: who writes says which one was read, and loses
when it is another by now (`revised_rows.py`). `told` says what other processes are told of a change.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
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
    false,
    text,
)

from dragoman.store.columns import Document, FreeText, UtcDateTime
from dragoman.store.records import ChangeKind
from dragoman.telemetry.time_buckets import MEASURES


@dataclass(frozen=True, slots=True)
class Told:
    """What a change of a table's row is to other processes, by columns; "" where there is none."""

    kind: ChangeKind
    workspace: str
    user: str
    subject: str


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _revision() -> Column[Any]:
    """How often the row was written."""
    return Column("revision", Integer, nullable=False, server_default="1")


def _told(
    kind: ChangeKind, user: str = "user", subject: str = "id", workspace: str = "workspace"
) -> dict[str, Any]:
    """What others are told when a row is written or removed."""
    return {"told": Told(kind, workspace, user, subject)}


def _of_connector() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["workspace", "connector_id"], ["connectors.workspace", "connectors.id"], ondelete="CASCADE"
    )


def _of_connector_of_any() -> ForeignKeyConstraint:
    """For rows of a user: their workspace is the user's, while the connector may be the app's."""
    return ForeignKeyConstraint(["connector_id"], ["connectors.id"], ondelete="CASCADE")


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
    Column("origin", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("era", Text),
    Column("instructions", FreeText),
    Column("server", Document),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("workspace", "id"),
    UniqueConstraint("workspace", "owner", "slug"),
    info=_told("connector", "owner"),
)

tools = Table(
    "tools",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("connector_id", Text, primary_key=True),
    Column("identity", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("slug", Text, nullable=False),
    Column("definition", Document, nullable=False),
    Column("version", Integer, nullable=False),
    Column("accepted_version", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("is_mcp", Boolean, nullable=False),
    Column("cache_ttl", Float, nullable=False),
    Column("allowed_callers", Document, nullable=False),
    Column("required_capabilities", Document, nullable=False),
    Column("approval", Text),
    Column("cost", Float, nullable=False),
    Column("first_seen", UtcDateTime, nullable=False),
    _revision(),
    _of_connector(),
    info=_told("tools", "", "connector_id"),
)

tool_versions = Table(
    "tool_versions",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("connector_id", Text, primary_key=True),
    Column("identity", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("fingerprint", Text, nullable=False),
    Column("definition", Document, nullable=False),
    Column("diff", FreeText, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    ForeignKeyConstraint(
        ["workspace", "connector_id", "identity", "tool"],
        ["tools.workspace", "tools.connector_id", "tools.identity", "tools.name"],
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
    _of_connector_of_any(),
    info=_told("credential", "user", "connector_id"),
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
    Column("created_at", UtcDateTime, nullable=False, index=True),
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
    Column("started_at", UtcDateTime, nullable=False, index=True),
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

# Numbers over time: see `telemetry.time_buckets`. `user` is empty for what nobody in particular did.
metric_buckets = Table(
    "metric_buckets",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("span", Integer, primary_key=True, autoincrement=False),
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    Column("user", Text, primary_key=True),
    Column("connector", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("agent", Text, primary_key=True),
    Column("client", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    *(Column(name, Float if name == "cost" else BigInteger, nullable=False) for name in MEASURES),
    sqlite_with_rowid=False,  # rows of a chart lie side by side; another index would lead there by detours
)


def _settings() -> Column[Any]:
    """What is set and has no column of its own."""
    return Column("settings", Document, nullable=False, server_default="{}")


workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", FreeText, nullable=False),
    Column("approval", Text, nullable=False),
    Column("limits", Document, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    _settings(),
    _revision(),
    info=_told("workspace", "", workspace="id"),
)

users = Table(
    "users",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("capabilities", Document, nullable=False),
    Column("limits", Document, nullable=False),
    Column("preferences", Document, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("external", Text, unique=True),
    Column("created_at", UtcDateTime, nullable=False),
    _settings(),
    _revision(),
    ForeignKeyConstraint(["workspace"], ["workspaces.id"], ondelete="CASCADE"),
    UniqueConstraint("workspace", "name"),
    info=_told("user", "id"),
)


def _of_user() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["workspace", "user"], ["users.workspace", "users.id"], ondelete="CASCADE")


api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("name", FreeText, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("hint", Text, nullable=False),
    Column("scopes", Document, nullable=False),
    Column("capabilities", Document),
    Column("way", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Column("client", Document),
    _settings(),
    _revision(),
    _of_user(),
    Index(None, "workspace", "user"),
    info=_told("key"),
)

# No foreign key to users from here on: in one-person mode nobody has signed up.
threads = Table(
    "threads",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("title", FreeText, nullable=False),
    Column("connectors", Document),
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Column("remove_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _revision(),
    Index(None, "workspace", "user", "updated_at"),
    info=_told("thread"),
)

# No foreign key to threads: tools are loaded also where nobody wrote the thread down.
loaded_tools = Table(
    "loaded_tools",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("thread", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("loaded_at", UtcDateTime, nullable=False),
    Index(None, "loaded_at"),
    info=_told("loaded_tools", subject="thread"),
)

approvals = Table(
    "approvals",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("thread", Text),
    Column("agent", Text),
    Column("way", Text, nullable=False),
    Column("key", Text),
    Column("connector_id", Text, nullable=False),
    Column("slug", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("arguments_hash", Text, nullable=False),
    Column("reason", FreeText, nullable=False),
    Column("arguments", LargeBinary, nullable=False),
    Column("only_once", Boolean, nullable=False),
    Column("status", Text, nullable=False),
    Column("answer", Text),
    Column("answered_by", Text),
    Column("answered_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
    Column("used_by", Text),
    Index(None, "workspace", "user", "status"),
    info=_told("approval"),
)

# No foreign key: native tools have no row of their own.
allowances = Table(
    "allowances",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("connector_id", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("thread", Text, primary_key=True),
    Column("key", Text, primary_key=True, server_default=""),
    Column("fingerprint", Text, nullable=False),
    Column("approval_id", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

usage = Table(
    "usage",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("measure", Text, primary_key=True),
    Column("window", Integer, primary_key=True, autoincrement=False),
    Column("amount", Float, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("expires_at", UtcDateTime, nullable=False),
)

app_files = Table(
    "app_files",
    metadata,
    Column("process", Text, primary_key=True),
    Column("slugs", Document, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", UtcDateTime, nullable=False),
    Column("user", Text, nullable=False),
    Column("agent", FreeText),
    Column("way", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", FreeText, nullable=False),
    Column("outcome", FreeText, nullable=False),
    Column("arguments_hash", Text),
    Column("details", Document, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

# The last entry of each workspace, and the last one that was forgotten.
audit_heads = Table(
    "audit_heads",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("forgotten_number", Integer, nullable=False),
    Column("forgotten_hash", Text, nullable=False),
)

authorization_flows = Table(
    "authorization_flows",
    metadata,
    Column("state_hash", Text, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("connector_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
    _of_connector_of_any(),
)

# Of MCP clients and people who sign in, at whichever process they come to.
client_sessions = Table(
    "client_sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("capabilities", Document, nullable=False),
    Column("lists", Document, nullable=False),
    Column("watched", Document, nullable=False),
    Column("stream", Text, nullable=False),
    Column("used_at", UtcDateTime, nullable=False, index=True),
    Index(None, "workspace", "user"),
    info=_told("client_session"),
)

one_time_values = Table(
    "one_time_values",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
    Index(None, "workspace", "user"),
    info=_told("one_time_value"),
)

# MCP clients that registered themselves (RFC 7591). What a person allowed one of them is a key of theirs.
oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("id", Text, primary_key=True),
    Column("metadata", Document, nullable=False),
    Column("is_used", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

# What signs access tokens, for every process.
signing_keys = Table(
    "signing_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)


# Agents, messages and runs. The root run's row is the lock of its family: who writes or removes any of it
# locks that row first.

agents = Table(
    "agents",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("description", FreeText, nullable=False),
    Column("instructions", FreeText, nullable=False),
    Column("model", Text),
    Column("fallbacks", Document, nullable=False),
    Column("capabilities", Document),
    Column("connectors", Document),
    Column("connector_id", Text),
    Column("exposure", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _settings(),
    _revision(),
    UniqueConstraint("workspace", "owner", "name"),
    info=_told("agent", "owner"),
)

# No foreign key: an agent of the app works for other workspaces than its own.
agent_numbers = Table(
    "agent_numbers",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("agent", Text, primary_key=True),
    Column("runs", Integer, nullable=False),
    Column("errors", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("milliseconds", Float, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cost", Float, nullable=False),
    Column("unpriced", Integer, nullable=False, server_default="0"),
    Column("last_used", UtcDateTime),
    Index(None, "agent"),
)

messages = Table(
    "messages",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("thread", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("author", Text, nullable=False),
    Column("text", FreeText, nullable=False),
    Column("agent", Text),
    Column("run", Text),
    Column("details", Document, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("root", Text, nullable=False),
    Column("parent", Text),
    Column("parent_call", Text),
    Column("agent", Text, nullable=False),
    Column("message", Integer),
    Column("request", FreeText, nullable=False),
    Column("status", Text, nullable=False),
    Column("answer", FreeText),
    Column("error", Document),
    Column("model", Text),
    Column("exposure", Text),
    Column("arm", Text),
    Column("options", Document, nullable=False),
    Column("limits", Document, nullable=False),
    Column("usage", Document, nullable=False),
    Column("role", Text, nullable=False),
    Column("grants", Document, nullable=False),
    Column("cancel_asked", Boolean, nullable=False),
    Column("worker", Text),
    Column("lease_until", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime, index=True),
    Index(None, "status", "lease_until"),
    # Most runs are done: the others are few, and looked for.
    Index(
        "ix_runs_not_done",
        *("workspace", "status", "created_at", "user"),
        sqlite_where=text("status <> 'done'"),
        postgresql_where=text("status <> 'done'"),
    ),
    Index(None, "workspace", "created_at"),
    Index(None, "workspace", "user", "created_at"),
    Index(None, "workspace", "user", "thread", "message"),
    Index(None, "workspace", "root"),
    Index(None, "workspace", "parent", "parent_call"),
)

run_steps = Table(
    "run_steps",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("run", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("content", Document),
    Column("time", UtcDateTime, nullable=False),
)

run_events = Table(
    "run_events",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("root", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("run", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("data", Document, nullable=False),
    Column("time", UtcDateTime, nullable=False),
)

questions = Table(
    "questions",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("root", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("connector", Text, nullable=False, server_default=""),
    Column("text", FreeText, nullable=False),
    Column("fields", Document),
    Column("url", Text),
    Column("status", Text, nullable=False),
    Column("answer", Document),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("answered_at", UtcDateTime),
    UniqueConstraint("workspace", "run", "key"),
    Index(None, "workspace", "user", "status"),
    Index(None, "workspace", "root"),
    Index(None, "status", "expires_at"),
)

# Those without an owner are the workspace's.
recipes = Table(
    "recipes",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("connector_id", Text, nullable=False),
    Column("question", FreeText, nullable=False),
    Column("text", FreeText, nullable=False),
    Column("tools", Document, nullable=False),
    Column("run", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _revision(),
    _of_connector_of_any(),
    Index(None, "workspace", "owner"),
    info=_told("recipe", "owner"),
)

# Without an owner the workspace's, without a workspace the app's. No key ties their connectors,
# which they name by id: what is left of a bundle whose connector is gone is shown as broken.
bundles = Table(
    "bundles",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("title", FreeText, nullable=False),
    Column("description", FreeText, nullable=False),
    Column("instructions", FreeText, nullable=False),
    Column("view", Text),
    Column("capabilities", Document),
    Column("tools", Document, nullable=False),
    Column("resources", Document, nullable=False),
    Column("hooks", Document, nullable=False, server_default="[]"),
    Column("origin", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _revision(),
    info=_told("bundle", "owner", "name"),
)

# Without a workspace the app's.
model_providers = Table(
    "model_providers",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("url", Text),
    Column("model", Text),
    Column("origin", Text, nullable=False),
    Column("key_id", Text),
    Column("nonce", LargeBinary),
    Column("ciphertext", LargeBinary),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _revision(),
    info=_told("model_provider", "", "name"),
)

# Without a workspace: a rollout is the operator's, for all of them.
rollout_states = Table(
    "rollout_states",
    metadata,
    Column("name", Text, primary_key=True),
    Column("state", Document, nullable=False),
    _revision(),
    info=_told("rollout", "", "name", ""),
)

rollout_samples = Table(
    "rollout_samples",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("run", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("arm", Text, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("milliseconds", Float, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("cost", Float, nullable=False),
    Column("thumb", Integer, nullable=False),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("unpriced", Integer, nullable=False, server_default="0"),
)

# What changed, for other processes to read: see `changes.py`. In SQLite there is one writer at a time and
# `number` is the order; PostgreSQL's transactions end in another order than they began, hence their id.
changes = Table(
    "changes",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("transaction_id", BigInteger, nullable=False, index=True),
    Column("origin", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("details", Document, nullable=False),
    Column("at", UtcDateTime, nullable=False, index=True),
    sqlite_autoincrement=True,
)
