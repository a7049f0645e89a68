"""The tables of agents, messages and runs: the second half of `tables`, in the same metadata.

Nothing refers to users or threads: in one-person mode nobody has signed up, and a run may have no thread.
The root run's row is the lock of its family: who writes or removes any of it locks that row first.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from dragoman.store.columns import Document, FreeText, UtcDateTime
from dragoman.store.tables import metadata

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
    UniqueConstraint("workspace", "owner", "name"),
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
    Column("text", FreeText, nullable=False),
    Column("fields", Document),
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

# The one table without a workspace: a rollout is the operator's, for all of them.
rollout_states = Table(
    "rollout_states",
    metadata,
    Column("name", Text, primary_key=True),
    Column("state", Document, nullable=False),
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
)
