"""Who goes which way while connector agents are rolled out, and when they are switched off. Pure.

A user stays in their arm: a hash decides, not chance. What is counted and kept is another's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from typing import Protocol

from dragoman.agents.exposure import Arm
from dragoman.run import Run
from dragoman.scope import Caller
from dragoman.store.records import RolloutSample

_PARTS = 10_000


class RolloutArms(Protocol):
    async def way_of(self, caller: Caller) -> tuple[Arm, bool]:
        """The way of a user's runs, and whether they are counted: not while nobody is compared."""
        ...


class RolloutRecorder(Protocol):
    async def finished(self, run: Run, milliseconds: float) -> None:
        """Counts a finished root run that has an arm. `milliseconds` of work, without waiting for people."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """Who goes through connector agents: those who are named, and a share of all others, in percent.

    While it says nothing, all do. A user is named by id, or as `workspace/user`. Another `salt` makes another
    choice.
    """

    share: float | None = None
    workspaces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    salt: str = "connector-agents"

    @property
    def is_set(self) -> bool:
        return self.share is not None or bool(self.workspaces or self.users)

    @property
    def is_on(self) -> bool:
        """Whether some are compared with others."""
        return bool(self.share or self.workspaces or self.users)

    def arm_of(self, workspace: str, user: str) -> Arm:
        if not self.is_set:
            return "agents"
        if workspace in self.workspaces or user in self.users or f"{workspace}/{user}" in self.users:
            return "agents"
        return "agents" if _place(self.salt, workspace, user) < (self.share or 0) / 100 * _PARTS else "direct"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutThresholds:
    """When the arm `agents` is switched off. `errors` and `slower` are in percent.

    Of each arm the last `runs` within the last `hours` count; fewer than `sample` decide nothing.
    """

    errors: float = 5.0
    slower: float = 50.0
    sample: int = 20
    runs: int = 200
    hours: float = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFigures:
    """What the runs of one arm were like. Milliseconds of work; money in dollars; means of a run.

    `unpriced` are requests to models whose price nobody knows, which `cost` does not contain.
    """

    runs: int = 0
    errors: int = 0
    latency_ms: float = 0.0
    latency_p95_ms: float = 0.0
    tokens: float = 0.0
    cost: float = 0.0
    unpriced: int = 0
    thumbs_up: int = 0
    thumbs_down: int = 0

    @property
    def error_share(self) -> float:
        """In percent."""
        return 100 * self.errors / self.runs if self.runs else 0.0

    @classmethod
    def of(cls, samples: Sequence[RolloutSample]) -> "RolloutFigures":
        if not samples:
            return cls()
        count = len(samples)
        times = sorted(sample.milliseconds for sample in samples)
        return cls(
            runs=count,
            errors=sum(not sample.ok for sample in samples),
            latency_ms=sum(times) / count,
            latency_p95_ms=times[ceil(0.95 * count) - 1],
            tokens=sum(sample.tokens for sample in samples) / count,
            cost=sum(sample.cost for sample in samples) / count,
            unpriced=sum(sample.unpriced for sample in samples),
            thumbs_up=sum(sample.thumb > 0 for sample in samples),
            thumbs_down=sum(sample.thumb < 0 for sample in samples),
        )


def figures_of(samples: Sequence[RolloutSample], arm: Arm, thresholds: RolloutThresholds) -> RolloutFigures:
    """`samples` oldest first."""
    return RolloutFigures.of([sample for sample in samples if sample.arm == arm][-thresholds.runs :])


def judged(agents: RolloutFigures, direct: RolloutFigures, thresholds: RolloutThresholds) -> str | None:
    """Why the arm `agents` must be switched off; None when it may go on."""
    if agents.runs < thresholds.sample:
        return None
    if agents.error_share > thresholds.errors:
        return (
            f"{agents.errors} of {agents.runs} runs failed: {agents.error_share:.1f} %,"
            f" over {thresholds.errors:g} %"
        )
    if direct.runs < thresholds.sample or direct.latency_ms <= 0:
        return None
    slower = 100 * (agents.latency_ms / direct.latency_ms - 1)
    if slower > thresholds.slower:
        return (
            f"a run took {agents.latency_ms:,.0f} ms instead of {direct.latency_ms:,.0f} ms: {slower:+.0f} %,"
            f" over {thresholds.slower:+g} %"
        )
    return None


def _place(salt: str, workspace: str, user: str) -> int:
    """Where a user stands between 0 and 9,999; every user has the same chance of every place."""
    words = "\0".join((salt, workspace, user)).encode()
    return int.from_bytes(sha256(words).digest()[:8]) % _PARTS
