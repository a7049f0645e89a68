"""How far connector agents are rolled out: who is in, what their runs were like, and the way back.

What the operator sets is kept in the store and wins over the environment. Plan and rollback are kept apart:
whoever switches off never overwrites what a person has just set, and what is set anew voids the rollback.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Literal

from dragoman.agents.exposure import Arm
from dragoman.agents.rollout import RolloutFigures, RolloutPlan, RolloutThresholds, figures_of, judged
from dragoman.calls.audit import Auditor
from dragoman.errors import Conflict, DragomanError, InvalidArguments
from dragoman.events import Event, Events
from dragoman.hub.bound import BoundService
from dragoman.hub.user_rights import check_operator
from dragoman.remembered import Remembered
from dragoman.run import Run
from dragoman.scope import APP, LOCAL_WORKSPACE, Caller
from dragoman.settings import Settings
from dragoman.store import Store
from dragoman.store.records import RolloutSample
from dragoman.telemetry.logs import get_logger

FRESH = 2.0  # seconds until what another process set or switched off is known here
_JUDGE_EVERY = 1.0
_PLAN = "connector-agents"
_ROLLBACK = "connector-agents:rollback"
_MOST_NAMES = 1_000
_ITSELF = Caller(workspace=LOCAL_WORKSPACE, user="dragoman", role="operator")
Source = Literal["environment", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """`since` says which plan it ended: it holds while that one is in force."""

    at: datetime
    reason: str
    since: str
    agents: Mapping[str, Any]
    direct: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStatus:
    """`is_active`: users go to the arm `agents` now. `rollback` is the last one; it may be over."""

    plan: RolloutPlan
    source: Source
    set_at: datetime | None
    set_by: str | None
    is_active: bool
    is_rolled_back: bool
    rollback: Rollback | None
    thresholds: RolloutThresholds
    arms: Mapping[Arm, RolloutFigures]

    @property
    def notes(self) -> Sequence[str]:
        """What the figures do not allow to judge yet."""
        least = self.thresholds.sample
        if not self.is_active:
            return ()
        judges: dict[Arm, str] = {"agents": "errors and latency", "direct": "latency"}
        return [
            f"the arm {arm} has {self.arms[arm].runs} of the {least} runs that are needed to judge {what}"
            for arm, what in judges.items()
            if self.arms[arm].runs < least
        ]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the store says. `since` is empty while nobody has set anything."""

    plan: RolloutPlan
    source: Source
    since: str = ""
    set_by: str | None = None
    rollback: Rollback | None = None

    @property
    def is_rolled_back(self) -> bool:
        return self.rollback is not None and self.rollback.since == self.since

    @property
    def is_active(self) -> bool:
        return self.plan.is_on and not self.is_rolled_back


class Rollout(BoundService):
    """Only the operator looks and sets; everybody rates their own runs."""

    __slots__ = ()

    async def status(self) -> RolloutStatus:
        """The plan, the figures of both arms, and whether one was switched off."""
        check_operator(self._caller)
        return await self._runtime.rollout.status()

    async def set(
        self,
        *,
        share: float | None = None,
        workspaces: Sequence[str] | None = None,
        users: Sequence[str] | None = None,
    ) -> RolloutStatus:
        """Sets what is given and keeps the rest; counting begins anew, and a rollback is over.

        Nothing given sets the same again: how a person says to go on after a rollback.
        """
        check_operator(self._caller)
        before, since = await self._runtime.rollout.plan()
        plan = replace(
            before,
            share=before.share if share is None else _checked_share(share),
            workspaces=before.workspaces if workspaces is None else _checked_names(workspaces),
            users=before.users if users is None else _checked_names(users),
        )
        facts = {"share": plan.share, "workspaces": [*plan.workspaces], "users": [*plan.users]}
        return await self._put(facts, "rollout.set", since)

    async def reset(self) -> RolloutStatus:
        """What the environment says holds again; counting begins anew, and a rollback is over."""
        check_operator(self._caller)
        _, since = await self._runtime.rollout.plan()
        return await self._put(None, "rollout.reset", since)

    async def _put(self, plan: Mapping[str, Any] | None, action: str, since: str) -> RolloutStatus:
        await self._runtime.rollout.put(plan, action.partition(".")[2], self._caller.user, since)
        await self._runtime.auditor.done(self._caller, action, _PLAN, details=plan or {})
        return await self._runtime.rollout.status()


class RolloutState:
    """Fills `RolloutArms` and `RolloutRecorder`: which runs use connector agents, and how they went."""

    def __init__(self, *, settings: Settings, store: Store, auditor: Auditor, events: Events) -> None:
        self._store = store
        self._auditor = auditor
        self._events = events
        self._default = RolloutPlan(
            share=settings.rollout_share,
            workspaces=settings.rollout_workspaces,
            users=settings.rollout_users,
        )
        self._thresholds = RolloutThresholds(sample=settings.rollout_sample, hours=settings.rollout_hours)
        self._known = Remembered(self._stored, FRESH)
        self._next_judgement = 0.0

    # For runs

    async def way_of(self, caller: Caller) -> tuple[Arm, bool]:
        """Where connector agents were switched off, nobody is compared with anybody."""
        known = await self._known.get(_PLAN)
        arm = "direct" if known.is_rolled_back else known.plan.arm_of(caller.workspace, caller.user)
        return arm, known.is_active

    async def finished(self, run: Run, milliseconds: float) -> None:
        if run.arm is None or run.status == "cancelled":
            return
        try:
            await self._store.rollout.add(await self._sample(run, milliseconds))
            if monotonic() >= self._next_judgement:
                await self.judge()
        except DragomanError as error:
            # A store that is away costs a figure, never the run that was counted.
            get_logger().warning("rollout.not_counted", run=run.id, error=error.message)

    async def judge(self) -> None:
        """Switches the arm `agents` off if its runs say so. Done by itself about once a second."""
        self._next_judgement = monotonic() + _JUDGE_EVERY
        known = await self._stored()
        if not known.is_active:
            return
        arms = await self._figures(known)
        if reason := judged(arms["agents"], arms["direct"], self._thresholds):
            await self._roll_back(known, reason, arms)

    # For people

    async def status(self) -> RolloutStatus:
        await self.judge()
        known = await self._stored()
        return RolloutStatus(
            plan=known.plan,
            source=known.source,
            set_at=_time(known.since),
            set_by=known.set_by,
            is_active=known.is_active,
            is_rolled_back=known.is_rolled_back,
            rollback=known.rollback,
            thresholds=self._thresholds,
            arms=await self._figures(known),
        )

    async def plan(self) -> tuple[RolloutPlan, str]:
        """And since when it holds."""
        known = await self._stored()
        return known.plan, known.since

    async def put(self, plan: Mapping[str, Any] | None, what: str, set_by: str, since: str) -> None:
        """None: what the environment says. In the place of what holds `since` then."""
        now = datetime.now(UTC).isoformat()
        before = await self._store.rollout.state(_PLAN)
        if since != (before or {}).get("since", ""):
            raise Conflict(
                "somebody else has set the rollout a moment ago: nothing was written",
                hint="look at it as it is now, then set it again",
            )
        await self._store.rollout.put_state(_PLAN, {"plan": plan, "since": now, "set_by": set_by}, before)
        self._known.forget_all()
        self._tell(what)

    def forget(self) -> None:
        """Another process has set something: the next question asks the store."""
        self._known.forget_all()

    async def last_word(self) -> str:
        """What was done last: set, reset or rolled_back."""
        known = await self._stored()
        if known.is_rolled_back:
            return "rolled_back"
        return "set" if known.source == "operator" else "reset"

    async def tidy(self) -> None:
        """Forgets runs that no longer count."""
        await self._store.rollout.forget(datetime.now(UTC) - 2 * self._window)

    # Parts

    @property
    def _window(self) -> timedelta:
        return timedelta(hours=self._thresholds.hours)

    async def _sample(self, run: Run, milliseconds: float) -> RolloutSample:
        """One that went through connector agents failed also when one of them did."""
        is_ok = run.status == "done"
        if is_ok and run.arm == "agents":
            family = await self._store.runs.family(run.workspace, run.id)
            is_ok = all(one.status != "failed" for one in family)
        return RolloutSample(
            run=run.id,
            workspace=run.workspace,
            user=run.user,
            arm=run.arm or "",
            ok=is_ok,
            milliseconds=milliseconds,
            tokens=run.usage.input_tokens + run.usage.output_tokens,
            cost=run.usage.cost,
            unpriced=run.usage.unpriced,
            at=run.finished_at or datetime.now(UTC),
        )

    async def _figures(self, known: _Known) -> dict[Arm, RolloutFigures]:
        begin = datetime.now(UTC) - self._window
        if (set_at := _time(known.since)) is not None:
            begin = max(begin, set_at)
        samples = await self._store.rollout.samples(begin)
        return {
            "agents": figures_of(samples, "agents", self._thresholds),
            "direct": figures_of(samples, "direct", self._thresholds),
        }

    async def _roll_back(self, known: _Known, reason: str, arms: Mapping[Arm, RolloutFigures]) -> None:
        facts: dict[str, Any] = {
            "at": datetime.now(UTC).isoformat(),
            "reason": reason,
            "since": known.since,
            "agents": asdict(arms["agents"]),
            "direct": asdict(arms["direct"]),
        }
        await self._store.rollout.put_state(_ROLLBACK, facts, await self._store.rollout.state(_ROLLBACK))
        self._known.forget_all()
        get_logger().warning("rollout.rolled_back", reason=reason)
        self._tell("rolled_back")
        await self._auditor.done(_ITSELF, "rollout.rolled_back", _PLAN, details={"reason": reason})

    def _tell(self, what: str) -> None:
        self._events.publish(Event(kind="rollout.changed", workspace=APP, data={"what": what}))

    async def _stored(self, name: str = _PLAN) -> _Known:
        stored = await self._store.rollout.state(name) or {}
        ended = await self._store.rollout.state(_ROLLBACK)
        plan, source = self._default, "environment"
        if stored.get("plan") is not None:
            plan, source = _plan(stored["plan"], self._default), "operator"
        rollback = None if ended is None else _rollback(ended)
        return _Known(plan, source, stored.get("since", ""), stored.get("set_by"), rollback)


def _plan(stored: Mapping[str, Any], default: RolloutPlan) -> RolloutPlan:
    return replace(
        default,
        share=stored["share"],
        workspaces=tuple(stored["workspaces"]),
        users=tuple(stored["users"]),
    )


def _rollback(stored: Mapping[str, Any]) -> Rollback:
    return Rollback(
        at=datetime.fromisoformat(stored["at"]),
        reason=stored["reason"],
        since=stored["since"],
        agents=stored["agents"],
        direct=stored["direct"],
    )


def _time(since: str) -> datetime | None:
    return datetime.fromisoformat(since) if since else None


def _checked_share(share: float) -> float:
    if not math.isfinite(share) or not 0 <= share <= 100:
        raise InvalidArguments("a share is between 0 and 100 percent", hint="0 leaves only those named")
    return float(share)


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if len(chosen) > _MOST_NAMES:
        raise InvalidArguments(f"at most {_MOST_NAMES:,} can be named", hint="use a share instead")
    if any(len(name) > 400 for name in chosen):
        raise InvalidArguments("a name is too long", hint="name workspaces and users by their ids")
    return chosen
