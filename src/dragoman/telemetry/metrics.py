"""How a connector does, in numbers. Pure arithmetic: knows neither calls nor stores.

Durations are counted in buckets that grow by a fixed factor, so that a quantile is off by at most
half a bucket (about 10 %) and a connector costs the same memory after ten calls and ten million.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_FIRST_MS = 0.1
_FACTOR = 1.2
_COUNT = 90
BOUNDS_MS: tuple[float, ...] = tuple(_FIRST_MS * _FACTOR**step for step in range(_COUNT))
_WEIGHT = 0.1  # of the newest call in the moving average
_COUNTS = frozenset(
    {
        *("succeeded", "failed", "rejected", "cached", "connects", "reconnects", "reused"),
        *("total_ms", "connect_total_ms", "cost"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorMetrics:
    """A view of one connector's numbers. Times are milliseconds; None means nothing is known yet.

    `calls` reached the connector; `rejected` ones never left; `cached` ones needed not to.
    """

    connector_id: str = ""
    workspace: str = ""
    slug: str = ""
    calls: int = 0
    succeeded: int = 0
    failed: int = 0
    rejected: int = 0
    cached: int = 0
    average_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    last_call_at: datetime | None = None
    connects: int = 0
    reconnects: int = 0
    reused: int = 0
    connect_average_ms: float | None = None
    connect_last_ms: float | None = None
    total_ms: float = 0.0
    cost: float = 0.0
    buckets: tuple[int, ...] = ()

    @property
    def reuse_rate(self) -> float | None:
        """The share of calls that found a connection open."""
        asked = self.connects + self.reused
        return self.reused / asked if asked else None


class ConnectorCounters:
    """The numbers of one connector as they grow."""

    __slots__ = (
        "average_ms",
        "buckets",
        "cached",
        "connect_last_ms",
        "connect_total_ms",
        "connects",
        "cost",
        "failed",
        "last_call_at",
        "last_error",
        "last_error_at",
        "reconnects",
        "rejected",
        "reused",
        "slug",
        "succeeded",
        "total_ms",
        "workspace",
    )

    def __init__(self, workspace: str, slug: str) -> None:
        self.workspace = workspace
        self.slug = slug
        self.succeeded = self.failed = self.rejected = self.cached = 0
        self.connects = self.reconnects = self.reused = 0
        self.average_ms = self.total_ms = 0.0
        self.connect_total_ms = self.connect_last_ms = 0.0
        self.cost = 0.0  # in dollars, of tools with a price
        self.last_error: str | None = None
        self.last_error_at = self.last_call_at = 0.0
        self.buckets = [0] * (_COUNT + 1)

    def finished(self, ok: bool, duration_ms: float, at: float, error: str | None) -> None:
        """`at` is the wall clock: people read it."""
        is_first = not (self.succeeded or self.failed)
        if ok:
            self.succeeded += 1
        else:
            self.failed += 1
            self.last_error, self.last_error_at = error, at
        self.last_call_at = at
        self.total_ms += duration_ms
        self.average_ms += (duration_ms - self.average_ms) * (1.0 if is_first else _WEIGHT)
        self.buckets[bisect_left(BOUNDS_MS, duration_ms)] += 1

    def connected(self, duration_ms: float, is_reconnect: bool) -> None:
        self.connects += 1
        self.reconnects += is_reconnect
        self.connect_total_ms += duration_ms
        self.connect_last_ms = duration_ms

    def view(self, connector_id: str) -> ConnectorMetrics:
        calls = self.succeeded + self.failed
        return ConnectorMetrics(
            connector_id=connector_id,
            workspace=self.workspace,
            slug=self.slug,
            calls=calls,
            succeeded=self.succeeded,
            failed=self.failed,
            rejected=self.rejected,
            cached=self.cached,
            average_ms=self.average_ms if calls else None,
            p50_ms=quantile(self.buckets, 0.5),
            p95_ms=quantile(self.buckets, 0.95),
            last_error=self.last_error,
            last_error_at=_time(self.last_error_at),
            last_call_at=_time(self.last_call_at),
            connects=self.connects,
            reconnects=self.reconnects,
            reused=self.reused,
            connect_average_ms=self.connect_total_ms / self.connects if self.connects else None,
            connect_last_ms=self.connect_last_ms if self.connects else None,
            total_ms=self.total_ms,
            cost=self.cost,
            buckets=tuple(self.buckets),
        )

    def plus(self, more: "ConnectorCounters") -> "ConnectorCounters":
        """Both counted together. Of what cannot be added, the moving average and what was last, that of the
        later call holds.
        """
        both = (self if self.last_call_at > more.last_call_at else more)._with_counts(self, more, 1)
        if more.last_error_at < self.last_error_at:
            both.last_error, both.last_error_at = self.last_error, self.last_error_at
        both.connect_last_ms = more.connect_last_ms if more.connects else self.connect_last_ms
        return both

    def since(self, before: "ConnectorCounters") -> "ConnectorCounters":
        """What was counted here after `before`, which is an earlier copy of this."""
        return self._with_counts(self, before, -1)

    def copy(self) -> "ConnectorCounters":
        return self.since(ConnectorCounters("", ""))

    def _with_counts(
        self, one: "ConnectorCounters", other: "ConnectorCounters", times: int
    ) -> "ConnectorCounters":
        made = ConnectorCounters(self.workspace, self.slug)
        for name in self.__slots__:
            if name in _COUNTS:
                setattr(made, name, getattr(one, name) + times * getattr(other, name))
            elif name != "buckets":
                setattr(made, name, getattr(self, name))
        made.buckets = [mine + times * more for mine, more in zip(one.buckets, other.buckets, strict=True)]
        return made

    def numbers(self) -> dict[str, Any]:
        """As they are stored; `restored` reads them back."""
        numbers = {name: getattr(self, name) for name in self.__slots__}
        numbers["buckets"] = {str(place): count for place, count in enumerate(self.buckets) if count}
        return numbers

    @classmethod
    def restored(cls, numbers: Mapping[str, Any]) -> "ConnectorCounters":
        """What is missing or of another shape starts at zero: old numbers never stop a start."""
        tally = cls(str(numbers.get("workspace", "")), str(numbers.get("slug", "")))
        for name in cls.__slots__:
            value, fresh = numbers.get(name), getattr(tally, name)
            if name != "buckets" and value is not None and isinstance(value, _shapes(fresh)):
                setattr(tally, name, value)
        for place, count in dict(numbers.get("buckets") or {}).items():
            if 0 <= int(place) <= _COUNT:
                tally.buckets[int(place)] = int(count)
        return tally


@dataclass(slots=True)
class ReadiedAgents:
    """How often an agent was made ready for a run of this process, and how long that took together."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds


def quantile(buckets: Sequence[int], share: float) -> float | None:
    """The middle of the bucket in which the share is reached, or None without any call."""
    total = sum(buckets)
    if not total:
        return None
    seen = 0
    for place, count in enumerate(buckets):
        seen += count
        if seen >= share * total:
            upper = BOUNDS_MS[min(place, _COUNT - 1)]
            return upper if place in (0, _COUNT) else upper / _FACTOR**0.5
    return None


def _shapes(value: object) -> tuple[type, ...]:
    return (int, float) if isinstance(value, int | float) else (str,)


def _time(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
