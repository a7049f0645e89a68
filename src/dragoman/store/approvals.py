"""Questions to people, their answers, and what they allowed for longer, as rows.

A binding is compared column by column: an approval for one call never serves another.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, RowMapping, and_, delete, func, insert, or_, select, update

from dragoman.store import tables
from dragoman.store.changes import change_of, note
from dragoman.store.database import SqlAggregate
from dragoman.store.records import Allowance, Approval, CallBinding

_rows = tables.approvals
_allowances = tables.allowances
_BOUND = tuple(item.name for item in fields(CallBinding))
_KEPT = timedelta(days=30)


class SqlApprovals(SqlAggregate):
    """Fills `ApprovalStore`."""

    async def ask(self, approval: Approval) -> Approval:
        is_open = (_rows.c.status == "pending") & (_rows.c.expires_at > approval.created_at)
        query = select(_rows).where(_is_bound(approval.binding), is_open)
        async with self._database.write() as connection:
            if not self._database.location.is_sqlite:
                key = func.hashtextextended(
                    f"{approval.binding.workspace} {approval.binding.arguments_hash}", 0
                )
                await connection.execute(select(func.pg_advisory_xact_lock(key)))
            if row := (await connection.execute(query)).mappings().first():
                return _approval(row)
            facts = asdict(approval)
            facts |= facts.pop("binding")
            await connection.execute(insert(_rows), facts)
            await connection.run_sync(note, self._database, change_of(_rows, facts, "added"))
        return approval

    async def find(self, workspace: str, approval_id: str) -> Approval | None:
        query = select(_rows).filter_by(workspace=workspace, id=approval_id)
        row = await self._database.row(query)
        return _approval(row) if row else None

    async def list(
        self, workspace: str, user: str | None = None, status: str | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        query = (
            select(_rows)
            .filter_by(workspace=workspace)
            .order_by(_rows.c.created_at.desc(), _rows.c.id)
            .limit(limit)
        )
        if user is not None:
            query = query.where(_rows.c.user == user)
        if status is not None:
            query = query.where(_rows.c.status == status)
        return [_approval(row) for row in await self._database.rows(query)]

    async def answer(self, approval: Approval, allowance: Allowance | None) -> bool:
        is_open = and_(
            _rows.c.workspace == approval.binding.workspace,
            _rows.c.id == approval.id,
            _rows.c.status == "pending",
            _rows.c.expires_at > approval.answered_at,
        )
        changes = {
            "status": approval.status,
            "answer": approval.answer,
            "answered_by": approval.answered_by,
            "answered_at": approval.answered_at,
            "expires_at": approval.expires_at,
        }
        async with self._database.write() as connection:
            if not (await connection.execute(update(_rows).where(is_open).values(changes))).rowcount:
                return False
            if allowance is not None:
                await connection.execute(self._database.upsert(_allowances), [asdict(allowance)])
            facts = {**asdict(approval.binding), "id": approval.id}
            await connection.run_sync(note, self._database, change_of(_rows, facts, "updated"))
        return True

    async def take(self, binding: CallBinding, now: datetime, used_by: str | None = None) -> Approval | None:
        is_free = (_rows.c.status == "approved") & (_rows.c.expires_at > now)
        if used_by is not None:
            is_own = (_rows.c.status == "used") & (_rows.c.used_by == used_by)
            query = select(_rows).where(_is_bound(binding), is_own).limit(1)
            if row := await self._database.row(query):
                return _approval(row)
        one = select(_rows.c.id).where(_is_bound(binding), is_free).limit(1)
        if not self._database.location.is_sqlite:
            one = one.with_for_update(skip_locked=True)
        taken = (
            update(_rows)
            .where(_rows.c.workspace == binding.workspace, _rows.c.id.in_(one), _rows.c.status == "approved")
            .values(status="used", used_by=used_by)
            .returning(*_rows.columns)
        )
        async with self._database.write() as connection:
            row = (await connection.execute(taken)).mappings().first()
        return _approval(row) if row else None

    async def settled(self, approvals: Collection[str]) -> frozenset[str]:
        query = select(_rows.c.id).where(_rows.c.id.in_(approvals), _rows.c.status == "pending")
        return frozenset(approvals) - frozenset(await self._database.scalars(query))

    async def drop(self, workspace: str, approval_id: str) -> bool:
        is_open = and_(_rows.c.workspace == workspace, _rows.c.id == approval_id, _rows.c.status == "pending")
        return bool(await self._database.execute(update(_rows).where(is_open).values(status="expired")))

    async def count_open(self, workspace: str, user: str) -> int:
        query = select(func.count()).where(
            _rows.c.workspace == workspace,
            _rows.c.user == user,
            _rows.c.status == "pending",
            _rows.c.expires_at > datetime.now(UTC),
        )
        return await self._database.scalar(query) or 0

    async def allows(self, binding: CallBinding) -> bool:
        query = select(_allowances.c.tool).where(
            _allowances.c.workspace == binding.workspace,
            _allowances.c.user == binding.user,
            _allowances.c.connector_id == binding.connector_id,
            _allowances.c.tool == binding.tool,
            _allowances.c.fingerprint == binding.fingerprint,
            _allowances.c.thread.in_(("", binding.thread or "")),
            _allowances.c.key == (binding.key or ""),
        )
        return await self._database.row(query) is not None

    async def allowances(self, workspace: str, user: str) -> Sequence[Allowance]:
        query = (
            select(_allowances)
            .filter_by(workspace=workspace, user=user)
            .order_by(_allowances.c.created_at.desc(), _allowances.c.tool)
        )
        return [Allowance(**row) for row in await self._database.rows(query)]

    async def withdraw(self, workspace: str, user: str, approval_id: str) -> bool:
        gone = delete(_allowances).filter_by(workspace=workspace, user=user, approval_id=approval_id)
        return bool(await self._database.execute(gone))

    async def expire(self, now: datetime) -> None:
        is_over = _rows.c.status.in_(("pending", "approved")) & (_rows.c.expires_at <= now)
        is_old = and_(_rows.c.status.not_in(("pending", "approved")), _rows.c.expires_at < now - _KEPT)
        async with self._database.write() as connection:
            await connection.execute(update(_rows).where(is_over).values(status="expired"))
            await connection.execute(delete(_rows).where(is_old))


def _is_bound(binding: CallBinding) -> ColumnElement[bool]:
    # `is_not_distinct_from`: no thread is the same as no thread. What was asked before keys were noted has
    # none, and is answered for whoever asked it.
    is_same = [_rows.c[name].is_not_distinct_from(getattr(binding, name)) for name in _BOUND if name != "key"]
    return and_(*is_same, or_(_rows.c.key.is_(None), _rows.c.key == binding.key))


def _approval(row: RowMapping) -> Approval:
    facts = dict(row)
    binding = CallBinding(**{name: facts.pop(name) for name in _BOUND})
    return Approval(binding=binding, **facts)
