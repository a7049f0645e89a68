"""Questions to people as people handle them: list, look, answer, take back what was allowed for longer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

from dragoman.access.approvals import OWN, RequestedCall, answered, is_person
from dragoman.errors import Conflict, Denied, InvalidArguments, NotFound
from dragoman.hub.bound import BoundService
from dragoman.hub.runs import read_timeline
from dragoman.names import did_you_mean
from dragoman.run import Run
from dragoman.scope import Caller
from dragoman.store.records import Allowance, Answer, Approval, ApprovalStatus

if TYPE_CHECKING:
    from dragoman.runs.timeline import TimelineEntry

_STATUSES: tuple[ApprovalStatus, ...] = get_args(ApprovalStatus)
_ANSWERS: tuple[Answer, ...] = get_args(Answer)
_MOST_SETTLED = 1000
_UNDER_WAY = ("pending", "approved")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """A question with what its person must know: the exact arguments, and the tool as it was then.

    `status` is that of now: one whose time is over is expired, whether or not anybody has noted it.
    """

    approval: Approval
    asked: RequestedCall
    status: ApprovalStatus
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalContext:
    """What led to a question: the run that asks, with its request, and the last steps before it."""

    run: Run
    steps: tuple["TimelineEntry", ...]


class Approvals(BoundService):
    """Only a person answers: never an agent."""

    __slots__ = ()

    async def list(self, status: str | None = "pending", limit: int = 100) -> list[ApprovalView]:
        """The caller's own, newest first; an admin's are those of the whole workspace."""
        caller = self._caller
        if status is not None and status not in _STATUSES:
            raise InvalidArguments(
                f"{status[:40]!r} is no status of an approval",
                hint=did_you_mean(status[:40], list(_STATUSES)) or f"there are: {', '.join(_STATUSES)}",
            )
        user = None if _answers_for_all(caller) else caller.user
        rows = await self._runtime.store.approvals.list(caller.workspace, user, status, limit)
        questions = [self._question(row) for row in rows if _is_within_reach(row, caller)]
        return [one for one in questions if status in (None, one.status)]

    async def get(self, approval_id: str) -> ApprovalView:
        """One call that waits or waited, with what was asked. Raises `NotFound`."""
        return self._question(await self._get(approval_id))

    async def context(self, approval_id: str, steps: int = 5) -> ApprovalContext | None:
        """What led there, for whoever may answer it; None where no run asks."""
        approval = await self._get(approval_id)
        binding, rows = approval.binding, self._runtime.store.runs
        if not binding.thread:
            return None
        found = await rows.list(
            binding.workspace,
            binding.user,
            thread=binding.thread,
            roots_only=True,
            before=approval.created_at,
            limit=1,
        )
        if not found:
            return None
        timeline = await read_timeline(self._runtime, found[0])
        before = [one for one in timeline.moments if one.time <= approval.created_at]
        return ApprovalContext(run=found[0], steps=tuple(before[-steps:]))

    async def answer(self, approval_id: str, answer: str) -> ApprovalView:
        """Writes the answer of a person; whoever waits for it goes on, or hears the no."""
        caller = self._caller
        _check_person(caller)
        before = await self._get(approval_id)
        if answer not in _ANSWERS:
            raise InvalidArguments(
                f"{answer[:40]!r} is no answer", hint=f"answer with one of: {', '.join(_ANSWERS)}"
            )
        _check_fits(before, answer)
        after = answered(before, answer, caller.user)
        allowance = _allowance(after)
        if not await self._runtime.store.approvals.answer(after, allowance):
            raise _too_late(await self._get(approval_id))
        details = {"approval": after.id, "answer": answer, "user": after.binding.user}
        await self._runtime.auditor.done(caller, "approval.answered", after.binding.tool, details=details)
        self._runtime.approvals.tell_answered(after)
        if allowance is not None:
            await self._settle(allowance, after)
        return self._question(after)

    async def allowances(self) -> Sequence[Allowance]:
        """What the caller has allowed for longer than one call, newest first."""
        caller = self._caller
        return await self._runtime.store.approvals.allowances(caller.workspace, caller.user)

    async def withdraw(self, approval_id: str) -> None:
        """Takes back what an answer allowed for longer: the next call asks again."""
        caller = self._caller
        _check_person(caller)
        if not await self._runtime.store.approvals.withdraw(caller.workspace, caller.user, approval_id):
            raise NotFound(
                f"nothing is allowed by the approval {approval_id[:80]!r}",
                hint="dragoman approvals allowed shows what is",
            )
        await self._runtime.auditor.done(caller, "approval.withdrawn", approval_id)

    async def _settle(self, allowance: Allowance, given: Approval) -> None:
        """What is allowed for longer answers the other open questions about the same."""
        for other in await self._runtime.store.approvals.list(
            allowance.workspace, allowance.user, "pending", _MOST_SETTLED
        ):
            if not other.only_once and _is_covered(other, allowance):
                same = replace(
                    other,
                    status="used",
                    answer=given.answer,
                    answered_by=given.answered_by,
                    answered_at=given.answered_at,
                    expires_at=given.expires_at,
                )
                if await self._runtime.store.approvals.answer(same, None):
                    self._runtime.approvals.tell_answered(same)

    async def _get(self, approval_id: str) -> Approval:
        caller = self._caller
        approval = await self._runtime.store.approvals.find(caller.workspace, approval_id)
        is_theirs = approval is not None and (
            approval.binding.user == caller.user or _answers_for_all(caller)
        )
        if approval is None or not is_theirs or not _is_within_reach(approval, caller):
            raise NotFound(
                f"there is no approval {approval_id[:80]!r}",
                hint="dragoman approvals list shows those there are",
            )
        return approval

    def _question(self, approval: Approval) -> ApprovalView:
        is_over = approval.status in _UNDER_WAY and approval.expires_at <= datetime.now(UTC)
        return ApprovalView(
            approval=approval,
            asked=self._runtime.approvals.open(approval),
            status="expired" if is_over else approval.status,
            answers=_possible(approval),
        )


def _answers_for_all(caller: Caller) -> bool:
    """An admin's agent has no more to see than any other agent of theirs."""
    return caller.is_admin and is_person(caller)


def _is_within_reach(approval: Approval, caller: Caller) -> bool:
    return approval.slug == OWN or caller.may_use(approval.slug, approval.binding.tool)


def _check_person(caller: Caller) -> None:
    if not is_person(caller):
        raise Denied(
            "only a person answers: no agent, no code and no MCP client",
            hint="a person answers, in the console or with a key of their own",
        )


def _possible(approval: Approval) -> tuple[Answer, ...]:
    if approval.only_once:
        return ("once", "no")
    return ("once", "always", "no") if approval.binding.thread is None else _ANSWERS


def _check_fits(approval: Approval, answer: Answer) -> None:
    if answer in _possible(approval):
        return
    tool = approval.binding.tool
    if approval.only_once:
        raise InvalidArguments(
            f"{tool} can only be allowed once: {approval.reason}", hint="answer with once or no"
        )
    raise InvalidArguments(
        "this call belongs to no thread, so nothing can be allowed for it",
        hint="answer with once, always or no",
    )


def _allowance(approval: Approval) -> Allowance | None:
    binding, now = approval.binding, approval.answered_at
    if approval.answer not in ("thread", "always") or now is None:
        return None
    return Allowance(
        workspace=binding.workspace,
        user=binding.user,
        connector_id=binding.connector_id,
        tool=binding.tool,
        fingerprint=binding.fingerprint,
        thread=binding.thread or "" if approval.answer == "thread" else "",
        key=binding.key or "",
        approval_id=approval.id,
        created_at=now,
    )


def _is_covered(approval: Approval, allowance: Allowance) -> bool:
    binding = approval.binding
    is_same_tool = (binding.connector_id, binding.tool, binding.fingerprint) == (
        allowance.connector_id,
        allowance.tool,
        allowance.fingerprint,
    )
    is_same_way = allowance.key == (binding.key or "")
    return is_same_tool and is_same_way and allowance.thread in ("", binding.thread)


def _too_late(approval: Approval) -> Conflict:
    if approval.answer is None:
        return Conflict(
            f"the approval {approval.id} has expired", hint="let the call be made again, then answer"
        )
    return Conflict(
        f"the approval {approval.id} was answered with {approval.answer!r} already",
        hint="what was allowed for longer can be taken back: dragoman approvals withdraw",
    )
