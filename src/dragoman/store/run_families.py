"""Runs as rows and back, and what concerns a root run together with all runs under it.

The root's row is the lock of the family: a writer that finds it gone leaves the family gone.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.run import Run, RunError, RunLimits, RunUsage
from dragoman.store import tables
from dragoman.store.later_fields import known_to
from dragoman.store.prepared_statement import PreparedStatement

_runs = tables.runs
_steps = tables.run_steps
_events = tables.run_events
_questions = tables.questions
_AT_ONCE = 500
_USED = tuple(one.name for one in fields(RunUsage))
_LIMITED = tuple(one.name for one in fields(RunLimits))
_COLUMNS = tuple(_runs.c.keys())
_member = _runs.alias("member")
_root = _runs.alias("root_run")
Key = tuple[str, str]
"""Workspace and run."""

is_root = _runs.c.id == _runs.c.root
run_key = tuple_(_runs.c.workspace, _runs.c.id)


def row_of(run: Run) -> list[Any]:
    """In the order of the table's columns."""
    facts = {name: getattr(run, name) for name in _COLUMNS}
    facts["error"] = None if run.error is None else run.error.facts()
    facts["options"] = dict(run.options)
    facts["limits"] = {name: getattr(run.limits, name) for name in _LIMITED}
    # What was not used is left out: a version that does not count it yet can read the others.
    facts["usage"] = {name: used for name in _USED if (used := getattr(run.usage, name))}
    facts["grants"] = [sorted(grant) for grant in run.grants]
    return [*facts.values()]


def run_of(row: Mapping[str, Any] | RowMapping) -> Run:
    facts = dict(row)
    facts["error"] = RunError.from_facts(facts["error"])
    facts["limits"] = known_to(RunLimits, facts["limits"])
    facts["usage"] = known_to(RunUsage, facts["usage"])
    facts["grants"] = tuple(frozenset(grant) for grant in facts["grants"])
    return Run(**facts)


# Made once: to put them together costs more than to execute them.
_LOCKED = (
    select(_member.c.workspace, _member.c.id)
    .join(_root, (_root.c.workspace == _member.c.workspace) & (_root.c.id == _member.c.root))
    .where(tuple_(_member.c.workspace, _member.c.id).in_(bindparam("keys", expanding=True)))
    # Always in this order: no two wait for each other.
    .order_by(_root.c.workspace, _root.c.id)
    .with_for_update(key_share=True, of=_root)
)
_ALL_LOCKED = PreparedStatement(_LOCKED, "keys")
_HELD_LOCKED = PreparedStatement(_LOCKED.where(_root.c.worker == bindparam("worker")), "keys")


def lock_families(connection: Connection, keys: set[Key], worker: str | None = None) -> set[Key]:
    """Which of these runs there are; until the transaction ends nobody removes them, or takes them over.

    With a `worker`: those alone whose root it holds.
    """
    if not keys:
        return set()
    facts: dict[str, Any] = {"keys": sorted(keys)}
    if worker is not None:
        facts["worker"] = worker
    locked = _ALL_LOCKED if worker is None else _HELD_LOCKED
    return {(workspace, run) for workspace, run in locked.rows(connection, facts)}


async def remove_families(connection: AsyncConnection, which: ColumnElement[bool]) -> int:
    """Root runs with all runs under them, journals, events and questions. Returns how many roots."""
    query = (
        select(_runs.c.workspace, _runs.c.id)
        .where(is_root, which)
        .order_by(_runs.c.workspace, _runs.c.id)
        .with_for_update()
    )
    roots = [(workspace, run) for workspace, run in await connection.execute(query)]
    for start in range(0, len(roots), _AT_ONCE):
        some = roots[start : start + _AT_ONCE]
        is_theirs = tuple_(_runs.c.workspace, _runs.c.root).in_(some)
        members = select(_runs.c.workspace, _runs.c.id).where(is_theirs)
        await connection.execute(delete(_steps).where(tuple_(_steps.c.workspace, _steps.c.run).in_(members)))
        for table in (_events, _questions, _runs):
            await connection.execute(delete(table).where(tuple_(table.c.workspace, table.c.root).in_(some)))
    return len(roots)
