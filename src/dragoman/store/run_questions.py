"""Questions of agents to people as rows. A run asks each one once, however often it is taken on again."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    not_,
    select,
    tuple_,
    update,
)

from dragoman.run import FINISHED, Message, Question
from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import RestingRun
from dragoman.store.run_families import Key
from dragoman.store.threads import add_messages, place_of, wait_for_threads

_rows = tables.questions
_runs = tables.runs
_steps = tables.run_steps
_events = tables.run_events
_KEPT = timedelta(days=30)
_NAMES = tuple(_rows.c.keys())
_ROOT = _NAMES.index("root")
# Made once: to put them together costs more than to execute them.
_FOUND = PreparedStatement(
    select(_rows).where(
        _rows.c.workspace == bindparam("of_workspace"),
        _rows.c.user == bindparam("of_user"),
        _rows.c.id == bindparam("of_question"),
    )
)
_has_child_at_work = exists().where(
    _runs.c.workspace == _rows.c.workspace,
    _runs.c.root == _rows.c.root,
    _runs.c.id != _rows.c.root,
    _runs.c.status.not_in(sorted(FINISHED)),
)
_ended = _steps.alias("ended")
_is_ended = exists().where(
    _ended.c.workspace == _steps.c.workspace,
    _ended.c.run == _steps.c.run,
    _ended.c.kind == "call.finished",
    _ended.c.key == _steps.c.key,
)
_has_call_under_way = exists().where(
    _steps.c.workspace == _rows.c.workspace,
    _steps.c.run == _rows.c.root,
    _steps.c.kind == "call.departed",
    not_(_is_ended),
)
_last_event = (
    select(func.max(_events.c.number))
    .where(_events.c.workspace == _rows.c.workspace, _events.c.root == _rows.c.root)
    .scalar_subquery()
)
_RESTING = PreparedStatement(
    select(*_rows.columns, _last_event).where(
        tuple_(_rows.c.workspace, _rows.c.root).in_(bindparam("roots", expanding=True)),
        _rows.c.status == "pending",
        _rows.c.run == _rows.c.root,
        _rows.c.connector == "",  # a server that asks has not survived what its call has not survived
        not_(_has_child_at_work),
        not_(_has_call_under_way),
    ),
    "roots",
)


class SqlRunQuestions(SqlAggregate):
    """The part of `RunStore` that asks people."""

    async def ask(self, question: Question) -> Question:
        facts = {column.name: getattr(question, column.name) for column in _rows.columns}
        facts["fields"] = None if question.fields is None else dict(question.fields)
        once = self._database.insert(_rows).on_conflict_do_nothing(index_elements=["workspace", "run", "key"])
        query = select(_rows).filter_by(workspace=question.workspace, run=question.run, key=question.key)
        async with self._database.write() as connection:
            await connection.execute(once, [facts])
            return _question((await connection.execute(query)).mappings().one())

    async def find_question(self, workspace: str, user: str, question: str) -> Question | None:
        facts = {"of_workspace": workspace, "of_user": user, "of_question": question}
        found = await self._database.found(_FOUND, facts)
        return Question(**dict(zip(_NAMES, found[0], strict=True))) if found else None

    async def questions(
        self,
        workspace: str,
        user: str,
        *,
        thread: str | None = None,
        status: str | None = "pending",
        limit: int = 100,
    ) -> Sequence[Question]:
        query = (
            select(_rows)
            .filter_by(workspace=workspace, user=user)
            .order_by(_rows.c.created_at.desc(), _rows.c.id)
            .limit(limit)
        )
        if thread is not None:
            query = query.where(_rows.c.thread == thread)
        if status is not None:
            query = query.where(_rows.c.status == status)
        return [_question(row) for row in await self._database.rows(query)]

    async def answer(self, workspace: str, user: str, question: str, answer: Any, now: datetime) -> bool:
        answered = _answered(workspace, user, question, now).values(answer=answer)
        return bool(await self._database.execute(answered))

    async def decline(self, workspace: str, user: str, question: str, now: datetime) -> bool:
        declined = _answered(workspace, user, question, now).values(status="declined")
        return bool(await self._database.execute(declined))

    async def answer_by(self, message: Message, question: str, now: datetime) -> Message | None:
        answered = _answered(message.workspace, message.user, question, now).values(answer=message.text)

        def written(connection: Connection) -> Message | None:
            wait_for_threads(connection, self._database, {place_of(message)})
            return add_messages(connection, [message])[0] if connection.execute(answered).rowcount else None

        return await self._database.transact(written)

    async def resting(self, roots: Sequence[Key]) -> Mapping[str, RestingRun]:
        found = await self._database.found(_RESTING, {"roots": [*roots]}) if roots else ()
        several = Counter(row[_ROOT] for row in found)
        return {
            row[_ROOT]: RestingRun(Question(**dict(zip(_NAMES, row, strict=False))), row[-1])
            for row in found
            if several[row[_ROOT]] == 1
        }

    async def settled_questions(self, questions: Collection[str]) -> frozenset[str]:
        query = select(_rows.c.id).where(_rows.c.id.in_(questions), _rows.c.status == "pending")
        return frozenset(questions) - frozenset(await self._database.scalars(query))

    async def close_questions(self, workspace: str, root: str, status: str) -> None:
        is_open = and_(_rows.c.workspace == workspace, _rows.c.root == root, _rows.c.status == "pending")
        await self._database.execute(update(_rows).where(is_open).values(status=status))

    async def expire_questions(self, now: datetime) -> None:
        is_over = (_rows.c.status == "pending") & (_rows.c.expires_at <= now)
        # A question goes with its run; this is for one that was asked while its run was being removed.
        has_run = exists().where(_runs.c.workspace == _rows.c.workspace, _runs.c.id == _rows.c.run)
        is_left = (_rows.c.expires_at < now - _KEPT) & not_(has_run)
        async with self._database.write() as connection:
            await connection.execute(update(_rows).where(is_over).values(status="expired"))
            await connection.execute(delete(_rows).where(is_left))


def _answered(workspace: str, user: str, question: str, now: datetime) -> Update:
    is_open = and_(
        _rows.c.workspace == workspace,
        _rows.c.user == user,
        _rows.c.id == question,
        _rows.c.status == "pending",
        _rows.c.expires_at > now,
    )
    return update(_rows).where(is_open).values(status="answered", answered_at=now)


def _question(row: RowMapping) -> Question:
    return Question(**row)
