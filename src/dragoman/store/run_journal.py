"""What runs write down while they work: steps, events, their own state and messages, in one transaction."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from dragoman.run import Message, RunEvent, Step
from dragoman.store import tables
from dragoman.store.agents import add_numbers
from dragoman.store.bulk_insert import BulkInsert
from dragoman.store.database import Database, SqlAggregate
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import JournalBatch
from dragoman.store.run_families import Key, lock_families, row_of, run_key
from dragoman.store.threads import add_messages, place_of, wait_for_threads

_runs = tables.runs
_steps = tables.run_steps
_events = tables.run_events
# What others than the run itself decide about it.
_KEPT = frozenset({"cancel_asked", "worker", "lease_until"})
_KEY = tuple(column.name for column in _runs.primary_key)
_REPLACED = tuple(one.name for one in _runs.columns if one.name not in {*_KEY, *_KEPT})
_highest_step = (
    select(func.max(_steps.c.number))
    .where(_steps.c.workspace == _runs.c.workspace, _steps.c.run == _runs.c.id)
    .scalar_subquery()
)

# Made once: to put them together costs more than to execute them.
_LAST_STEPS = PreparedStatement(
    select(_runs.c.workspace, _runs.c.id, _highest_step).where(
        run_key.in_(bindparam("keys", expanding=True))
    ),
    "keys",
)

_EVENTS = PreparedStatement(
    select(_events)
    .where(
        _events.c.workspace == bindparam("of_workspace"),
        _events.c.root == bindparam("of_root"),
        _events.c.number > bindparam("after"),
    )
    .order_by(_events.c.number)
    .limit(bindparam("most"))
)
_EVENT_NAMES = tuple(_events.c.keys())
_STEPS = PreparedStatement(
    select(_steps)
    .where(_steps.c.workspace == bindparam("of_workspace"), _steps.c.run == bindparam("of_run"))
    .order_by(_steps.c.number)
)
_STEP_NAMES = tuple(_steps.c.keys())


class SqlRunJournal(SqlAggregate):
    """The part of `RunStore` that a run at work uses.

    What belongs to a family that was removed meanwhile is left out, and the rest of the batch written.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._put_runs = BulkInsert(_runs, unless_there=_KEY, replacing=_REPLACED)
        self._new_steps = BulkInsert(_steps)
        self._new_events = BulkInsert(_events, unless_there=["workspace", "root", "number"])

    async def write(self, batch: JournalBatch) -> Sequence[Message]:
        _, messages = await self._database.transact(lambda connection: self._write(connection, batch, None))
        return messages

    async def write_held(self, batch: JournalBatch, worker: str) -> frozenset[str]:
        present, _ = await self._database.transact(lambda connection: self._write(connection, batch, worker))
        return frozenset(run for workspace, run in _named(batch) if (workspace, run) not in present)

    def _write(
        self, connection: Connection, batch: JournalBatch, worker: str | None
    ) -> tuple[set[Key], Sequence[Message]]:
        wait_for_threads(connection, self._database, set(map(place_of, batch.messages)))
        present = _present(connection, batch, worker)
        if runs := [row_of(run) for run in batch.runs if (run.workspace, run.id) in present]:
            self._put_runs.insert(connection, runs)
        self._add_steps(connection, [one for one in batch.steps if (one.workspace, one.run) in present])
        self._add_events(connection, [one for one in batch.events if (one.workspace, one.root) in present])
        if worked := [one for one in batch.worked if (one.workspace, one.run) in present]:
            numbers = [(one.workspace, one.agent, one.numbers) for one in worked]
            add_numbers(connection, self._database, numbers)
        return present, _add_messages(connection, batch.messages, present)

    def _add_events(self, connection: Connection, events: Sequence[RunEvent]) -> None:
        if events:
            self._new_events.insert(connection, [_event_row(one) for one in events])

    def _add_steps(self, connection: Connection, steps: Sequence[Step]) -> None:
        if not steps:
            return
        keys = {"keys": sorted({(step.workspace, step.run) for step in steps})}
        found = _LAST_STEPS.rows(connection, keys)
        highest = {(workspace, run): number or 0 for workspace, run, number in found}
        rows: list[list[Any]] = []
        for step in steps:
            key = (step.workspace, step.run)
            highest[key] += 1
            rows.append(_step_row(step, highest[key]))
        self._new_steps.insert(connection, rows)

    async def steps(self, workspace: str, run: str) -> Sequence[Step]:
        found = await self._database.found(_STEPS, {"of_workspace": workspace, "of_run": run})
        return [Step(**dict(zip(_STEP_NAMES, row, strict=True))) for row in found]

    async def events(
        self, workspace: str, root: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[RunEvent]:
        facts = {"of_workspace": workspace, "of_root": root, "after": after, "most": limit}
        found = await self._database.found(_EVENTS, facts)
        return [RunEvent(**dict(zip(_EVENT_NAMES, row, strict=True))) for row in found]

    async def last_event(self, workspace: str, root: str) -> int:
        query = select(func.max(_events.c.number)).where(
            _events.c.workspace == workspace, _events.c.root == root
        )
        return await self._database.scalar(query) or 0


def _named(batch: JournalBatch) -> set[Key]:
    keys = {(step.workspace, step.run) for step in batch.steps}
    keys |= {(event.workspace, event.root) for event in batch.events}
    keys |= {(message.workspace, message.run) for message in batch.messages if message.run is not None}
    keys |= {(worked.workspace, worked.run) for worked in batch.worked}
    for run in batch.runs:
        keys |= {(run.workspace, run.id), (run.workspace, run.root)}
    return keys


def _present(connection: Connection, batch: JournalBatch, worker: str | None) -> set[Key]:
    """The runs of the batch that are there, and the child runs that come with it."""
    found = lock_families(connection, _named(batch), worker)
    return found | {(run.workspace, run.id) for run in batch.runs if (run.workspace, run.root) in found}


def _add_messages(
    connection: Connection, messages: Sequence[Message], present: set[Key]
) -> Sequence[Message]:
    """Those of a removed run keep the number 0: a removed thread must not come back."""
    kept = [one for one in messages if one.run is None or (one.workspace, one.run) in present]
    added = iter(add_messages(connection, kept))
    return [
        next(added) if one.run is None or (one.workspace, one.run) in present else replace(one, number=0)
        for one in messages
    ]


def _step_row(step: Step, number: int) -> list[Any]:
    """In the order of the table's columns."""
    return [step.workspace, step.run, number, step.kind, step.key, step.content, step.time]


def _event_row(event: RunEvent) -> list[Any]:
    """In the order of the table's columns."""
    first = [event.workspace, event.root, event.number, event.run, event.kind]
    return [*first, event.agent, dict(event.data), event.time]
