"""Agents, the messages of threads, runs with their journals, events and questions, and rollouts."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    _make_agents()
    _make_messages()
    _make_runs()
    _make_journal()
    _make_questions()
    _make_rollouts()
    op.add_column("approvals", _text("used_by", nullable=True))


def _text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _integer(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=nullable)


def _large(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _float(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Float(), nullable=False)


def _boolean(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _document(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(), nullable=nullable)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _make_agents() -> None:
    op.create_table(
        "agents",
        _text("workspace"),
        _text("id"),
        _text("owner"),
        _text("name"),
        _text("kind"),
        _text("status"),
        _text("description"),
        _text("instructions"),
        _text("model", nullable=True),
        _document("fallbacks"),
        _document("capabilities", nullable=True),
        _document("connectors", nullable=True),
        _text("connector_id", nullable=True),
        _text("exposure"),
        _moment("created_at"),
        _moment("updated_at"),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_agents"),
        sa.UniqueConstraint("workspace", "owner", "name", name="uq_agents_workspace_owner_name"),
    )
    op.create_table(
        "agent_numbers",
        _text("workspace"),
        _text("agent"),
        _integer("runs"),
        _integer("errors"),
        _integer("calls"),
        _float("milliseconds"),
        _large("input_tokens"),
        _large("output_tokens"),
        _float("cost"),
        _moment("last_used", nullable=True),
        sa.PrimaryKeyConstraint("workspace", "agent", name="pk_agent_numbers"),
    )
    _index("agent_numbers", "agent")


def _make_messages() -> None:
    op.create_table(
        "messages",
        _text("workspace"),
        _text("user"),
        _text("thread"),
        _integer("number"),
        _text("author"),
        _text("text"),
        _text("agent", nullable=True),
        _text("run", nullable=True),
        _document("details"),
        _moment("created_at"),
        sa.PrimaryKeyConstraint("workspace", "user", "thread", "number", name="pk_messages"),
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        _text("workspace"),
        _text("id"),
        _text("user"),
        _text("thread"),
        _text("root"),
        _text("parent", nullable=True),
        _text("parent_call", nullable=True),
        _text("agent"),
        _integer("message", nullable=True),
        _text("request"),
        _text("status"),
        _text("answer", nullable=True),
        _document("error", nullable=True),
        _text("model", nullable=True),
        _text("exposure", nullable=True),
        _text("arm", nullable=True),
        _document("options"),
        _document("limits"),
        _document("usage"),
        _text("role"),
        _document("grants"),
        _boolean("cancel_asked"),
        _text("worker", nullable=True),
        _moment("lease_until", nullable=True),
        _moment("created_at"),
        _moment("started_at", nullable=True),
        _moment("finished_at", nullable=True),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_runs"),
    )
    _index("runs", "finished_at")
    _index("runs", "status", "lease_until")
    _index("runs", "workspace", "created_at")
    _index("runs", "workspace", "user", "created_at")
    _index("runs", "workspace", "user", "thread", "message")
    _index("runs", "workspace", "root")
    _index("runs", "workspace", "parent", "parent_call")


def _make_journal() -> None:
    op.create_table(
        "run_steps",
        _text("workspace"),
        _text("run"),
        _integer("number"),
        _text("kind"),
        _text("key"),
        _document("content", nullable=True),
        _moment("time"),
        sa.PrimaryKeyConstraint("workspace", "run", "number", name="pk_run_steps"),
    )
    op.create_table(
        "run_events",
        _text("workspace"),
        _text("root"),
        _integer("number"),
        _text("run"),
        _text("kind"),
        _text("agent"),
        _document("data"),
        _moment("time"),
        sa.PrimaryKeyConstraint("workspace", "root", "number", name="pk_run_events"),
    )


def _make_questions() -> None:
    op.create_table(
        "questions",
        _text("workspace"),
        _text("id"),
        _text("user"),
        _text("thread"),
        _text("run"),
        _text("root"),
        _text("key"),
        _text("agent"),
        _text("text"),
        _document("fields", nullable=True),
        _text("status"),
        _document("answer", nullable=True),
        _moment("created_at"),
        _moment("expires_at"),
        _moment("answered_at", nullable=True),
        sa.PrimaryKeyConstraint("workspace", "id", name="pk_questions"),
        sa.UniqueConstraint("workspace", "run", "key", name="uq_questions_workspace_run_key"),
    )
    _index("questions", "workspace", "user", "status")
    _index("questions", "workspace", "root")
    _index("questions", "status", "expires_at")


def _make_rollouts() -> None:
    op.create_table(
        "rollout_states",
        _text("name"),
        _document("state"),
        sa.PrimaryKeyConstraint("name", name="pk_rollout_states"),
    )
    op.create_table(
        "rollout_samples",
        _text("workspace"),
        _text("run"),
        _text("user"),
        _text("arm"),
        _boolean("ok"),
        _float("milliseconds"),
        _large("tokens"),
        _float("cost"),
        _integer("thumb"),
        _moment("at"),
        sa.PrimaryKeyConstraint("workspace", "run", name="pk_rollout_samples"),
    )
    _index("rollout_samples", "at")
