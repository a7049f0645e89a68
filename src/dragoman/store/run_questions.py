"""Questions of agents to people as rows. A run asks each one once, however often it is taken on again."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, Update, and_, delete, exists, not_, select, update

from dragoman.run import Message, Question
from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.threads import add_messages, place_of, wait_for_threads

_rows = tables.questions
_runs = tables.runs
_KEPT = timedelta(days=30)


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
        query = select(_rows).where(
            _rows.c.workspace == workspace, _rows.c.user == user, _rows.c.id == question
        )
        row = await self._database.row(query)
        return _question(row) if row else None

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
