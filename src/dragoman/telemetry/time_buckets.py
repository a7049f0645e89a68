"""What happened in each stretch of time, by user, connector, tool, agent, client and model. Pure arithmetic.

Everything is counted by the minute in memory. What is written goes into buckets of three lengths (`SPANS`)
and three levels of detail (`LEVELS`): a chart of a month reads half days, one of everything reads no tools.
Durations are counted in steps that grow by a fixed factor, so that buckets can be added and still have
quantiles, which are off by at most a quarter and usually by less than a tenth.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MINUTE, HALF_HOUR, HALF_DAY = 60, 1800, 43_200
_DAY = 86_400
SPANS: Mapping[int, int] = {MINUTE: 3 * 3600, HALF_HOUR: 15 * _DAY, HALF_DAY: 62 * _DAY}
"""The lengths of buckets, and for how many seconds each is kept: twice what a chart shows of it."""
DIMENSIONS = ("connector", "tool", "agent", "client", "model")
LEVELS: tuple[frozenset[str], ...] = (frozenset(), frozenset({"connector"}), frozenset(DIMENSIONS))
"""Which dimensions the rows of a level tell apart, besides workspace and user."""
COUNTS = (
    "calls", "errors", "reconnects", "runs", "failed_runs", "requests", "input_tokens", "output_tokens",
    "unpriced", "cost",
)  # fmt: skip
"""`unpriced` are requests to models whose price nobody knows; `cost` is in dollars."""
_FACTOR = 1.6
_STEPS_MS: tuple[float, ...] = tuple(_FACTOR**step for step in range(23))  # to about half a minute
DURATIONS = tuple(f"took_{place}" for place in range(len(_STEPS_MS) + 1))
MEASURES = (*COUNTS, *DURATIONS)
_AT = {name: place for place, name in enumerate(COUNTS)}
_FIRST_DURATION = len(COUNTS)


class BucketKey(NamedTuple):
    """Of what a minute's counts are. Empty where something has no such thing."""

    workspace: str
    user: str
    start: int
    connector: str = ""
    tool: str = ""
    agent: str = ""
    client: str = ""
    model: str = ""


class BucketRow(NamedTuple):
    """One bucket as it is written: added to what the store has of it."""

    workspace: str
    span: int
    level: int
    start: int
    user: str
    connector: str
    tool: str
    agent: str
    client: str
    model: str
    counts: Sequence[float]
    """In the order of `MEASURES`."""


class TimeBuckets:
    """Counts that nobody has written yet."""

    def __init__(self) -> None:
        self._minutes: dict[BucketKey, list[float]] = {}

    def __bool__(self) -> bool:
        return bool(self._minutes)

    def call(self, key: BucketKey, ok: bool, duration_ms: float | None, cost: float) -> None:
        """`duration_ms` is None for a call that never left."""
        counts = self._of(key)
        counts[_AT["calls"]] += 1
        if not ok:
            counts[_AT["errors"]] += 1
        if duration_ms is not None:
            counts[_FIRST_DURATION + bisect_left(_STEPS_MS, duration_ms)] += 1
        if cost:
            counts[_AT["cost"]] += cost

    def add(self, key: BucketKey, **amounts: float) -> None:
        counts = self._of(key)
        for name, amount in amounts.items():
            counts[_AT[name]] += amount

    def take(self) -> Mapping[BucketKey, Sequence[float]]:
        """What was counted, which is forgotten here; `put_back` where it could not be written."""
        taken, self._minutes = self._minutes, {}
        return taken

    def put_back(self, taken: Mapping[BucketKey, Sequence[float]]) -> None:
        for key, counts in taken.items():
            _add(self._of(key), counts)

    def _of(self, key: BucketKey) -> list[float]:
        counts = self._minutes.get(key)
        if counts is None:
            counts = self._minutes[key] = [0] * len(MEASURES)
        return counts


def minute_of(seconds: float) -> int:
    return int(seconds) // MINUTE * MINUTE


def rows_of(taken: Mapping[BucketKey, Sequence[float]]) -> list[BucketRow]:
    """The same in every length and at every level, in the order of their keys."""
    rows: dict[tuple[str | int, ...], list[float]] = {}
    for key, counts in taken.items():
        for level, told in enumerate(LEVELS):
            where = [getattr(key, name) if name in told else "" for name in DIMENSIONS]
            for span in SPANS:
                place = (key.workspace, span, level, key.start // span * span, key.user, *where)
                _add(rows.setdefault(place, [0] * len(MEASURES)), counts)
    return [BucketRow(*place, counts) for place, counts in sorted(rows.items())]  # type: ignore[arg-type]


def level_for(dimensions: Iterable[str]) -> int:
    """The coarsest that still tells these apart."""
    wanted = frozenset(dimensions)
    return next(level for level, told in enumerate(LEVELS) if wanted <= told)


def quantile_ms(durations: Sequence[float], share: float) -> float | None:
    """Within the step in which the share is reached; None without any call."""
    total = sum(durations)
    if not total:
        return None
    seen = 0.0
    for place, count in enumerate(durations):
        if count and seen + count >= share * total:
            upper = _STEPS_MS[min(place, len(_STEPS_MS) - 1)]
            return upper * _FACTOR ** ((share * total - seen) / count - 1) if place else upper / 2
        seen += count
    return None


def _add(counts: list[float], more: Sequence[float]) -> None:
    for place, amount in enumerate(more):
        if amount:
            counts[place] += amount
