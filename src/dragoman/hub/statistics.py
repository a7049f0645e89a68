"""Numbers over time: calls, errors, latency, tokens, cost and reconnects, as buckets in the store have them.

A user has their own; an admin those of the whole workspace, split by whose they are or of one user.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any, Literal, get_args

from dragoman.errors import InvalidArguments, NotFound
from dragoman.hub.bound import BoundService
from dragoman.names import did_you_mean, dotted_name
from dragoman.store.records import BucketQuery, BucketSum
from dragoman.telemetry.time_buckets import (
    COUNTS,
    HALF_DAY,
    HALF_HOUR,
    MEASURES,
    MINUTE,
    quantile_ms,
)

MetricRange = Literal["1h", "24h", "7d", "30d"]
MetricSplit = Literal["connector", "tool", "agent", "user", "client", "model"]
_STEPS: Mapping[str, tuple[int, int, int]] = {
    "1h": (MINUTE, 60, 60),
    "24h": (HALF_HOUR, 1800, 48),
    "7d": (HALF_HOUR, 7200, 84),
    "30d": (HALF_DAY, HALF_DAY, 60),
}
"""Of each range the bucket that is read, how many seconds a point of its chart is, and how many there are."""
_LARGEST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricNumbers:
    """What was counted in some time. What people took to answer is no part of `p50_ms` and `p95_ms`.

    `cost` is None where nothing has a known price; `unpriced` are requests to models that have none.
    """

    calls: int = 0
    errors: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    reconnects: int = 0
    runs: int = 0
    failed_runs: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def error_share(self) -> float | None:
        return self.errors / self.calls if self.calls else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPoint:
    """One bar of a chart."""

    start: datetime
    numbers: MetricNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricGroup:
    """What belongs to one connector, tool, agent, user, client or model; `label` is how people call it."""

    name: str
    label: str
    numbers: MetricNumbers
    points: tuple[MetricPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """The numbers of a range. `before` are those of the same time before it; `groups` the busiest first."""

    last: MetricRange
    start: datetime
    end: datetime
    seconds: int
    split: MetricSplit | None
    total: MetricNumbers
    before: MetricNumbers
    points: tuple[MetricPoint, ...]
    groups: tuple[MetricGroup, ...] = ()


class Statistics(BoundService):
    """Numbers over time."""

    __slots__ = ()

    async def series(
        self,
        last: str = "24h",
        *,
        split: str | None = None,
        connector: str | Sequence[str] | None = None,
        tool: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        client: str | None = None,
        model: str | None = None,
        groups: int = 50,
        with_points: bool = True,
    ) -> MetricSeries:
        """The last hour, day, week or month: one point for every step of it, and its sum.

        `split` adds the same for each connector, tool, agent, user, client or model: the busiest, at most
        `groups` of them. The others are filters. `with_points=False` leaves out the points of groups.
        """
        chosen, by = _range(last), _split(split)
        asked = {"connector": connector, "tool": tool, "agent": agent, "client": client, "model": model}
        only = {name: _texts(value) for name, value in asked.items() if value is not None}
        query, names = await self._query(chosen, only, user)
        await self._runtime.recorder.flush()
        read, step = self._runtime.store.metrics.read, _STEPS[chosen][1]
        length = query.end - query.start
        points, earlier = await asyncio.gather(
            read(replace(query, step=step)),
            read(replace(query, start=query.start - length, end=query.start)),
        )
        # A group has nothing of what nobody has anything of, and each sum of groups costs.
        told = replace(query, measures=_not_zero(points))
        found = await self._groups(told, by, groups, step if with_points else None, names)
        return MetricSeries(
            last=chosen,
            start=_time(query.start),
            end=_time(query.end),
            seconds=step,
            split=by,
            total=_numbers([one.counts for one in points]),
            before=_numbers([one.counts for one in earlier]),
            points=_points(points, query, step),
            groups=found,
        )

    async def _query(
        self, last: MetricRange, only: Mapping[str, frozenset[str]], user: str | None
    ) -> tuple[BucketQuery, Mapping[str, str]]:
        """What the caller may see of it, and how its users are called."""
        caller, (span, step, count) = self._caller, _STEPS[last]
        names: Mapping[str, str] = await self._names() if caller.is_admin else dict[str, str]()
        end = int(self._runtime.store.clock.now().timestamp()) // step * step + step
        shared = {one.slug for one in self._runtime.registry.list(caller) if not one.owner}
        if wanted := only.get("connector"):
            shared &= wanted
        query = BucketQuery(
            workspace=caller.workspace,
            user=self._user(user, names),
            span=span,
            start=end - step * count,
            end=end,
            only=only,
            # Nobody in particular opens a shared connection: it has neither tool nor agent.
            shared=shared if {*only} <= {"connector"} and user is None else (),
        )
        return query, names

    def _user(self, asked: str | None, names: Mapping[str, str]) -> str | None:
        caller = self._caller
        if asked is None:
            return None if caller.is_admin else caller.user
        if asked == caller.user or asked in names:
            return asked
        for known, name in names.items():
            if name == asked:
                return known
        raise NotFound(f"there is no user {asked[:80]!r}", hint="admins see the users of their workspace")

    async def _names(self) -> Mapping[str, str]:
        users = await self._runtime.store.people.users(self._caller.workspace)
        return {user.id: user.name for user in users}

    async def _groups(
        self,
        query: BucketQuery,
        by: MetricSplit | None,
        most: int,
        step: int | None,
        names: Mapping[str, str],
    ) -> tuple[MetricGroup, ...]:
        """Where there are more than are shown, all are read first for what makes them busy alone."""
        if by is None:
            return ()
        metrics, query, most = self._runtime.store.metrics, replace(query, split=by), min(most, _LARGEST)
        if len(await metrics.names(query, most + 1)) > most:
            sums = [one for one in await metrics.read(replace(query, measures=_BUSY)) if one.of]
            busiest = nlargest(most, sums, key=lambda one: one.counts)
            query = replace(query, only={**query.only, by: frozenset(one.of for one in busiest)})
        over_time: dict[str, list[BucketSum]] = {}
        for one in await metrics.read(replace(query, step=step)):
            if one.of:
                over_time.setdefault(one.of, []).append(_with_zeros(one, query.measures))
        groups = (
            MetricGroup(
                name=name,
                label=_label(by, name, names),
                numbers=_numbers([one.counts for one in found]),
                points=_points(found, query, step) if step is not None else (),
            )
            for name, found in over_time.items()
        )
        return tuple(sorted(groups, key=_busy_first))


_BUSY = ("calls", "requests", "reconnects")


def _busy_first(group: MetricGroup) -> tuple[float | str, ...]:
    return (*(-getattr(group.numbers, name) for name in _BUSY), group.name)


def _not_zero(sums: Sequence[BucketSum]) -> tuple[str, ...]:
    columns = zip(*(one.counts for one in sums), strict=True)
    return tuple(name for name, counts in zip(MEASURES, columns, strict=False) if any(counts))


def _with_zeros(one: BucketSum, measures: Sequence[str]) -> BucketSum:
    if len(measures) == len(MEASURES):
        return one
    counts = dict(zip(measures, one.counts, strict=True))
    return one._replace(counts=tuple(counts.get(name, 0.0) for name in MEASURES))


def _label(by: MetricSplit, name: str, users: Mapping[str, str]) -> str:
    match by:
        case "user":
            return users.get(name, name)
        case "tool":
            return dotted_name(name)
        case "connector" if name == "native":
            return "functions of the app"
        case _:
            return name


def _points(sums: Sequence[BucketSum], query: BucketQuery, step: int) -> tuple[MetricPoint, ...]:
    """One for every step, also where nothing happened."""
    by_start = {one.start: one.counts for one in sums}
    starts = range(query.start, query.end, step)
    return tuple(
        MetricPoint(start=_time(at), numbers=_numbers([by_start[at]] if at in by_start else []))
        for at in starts
    )


def _numbers(all_counts: Sequence[Sequence[float]]) -> MetricNumbers:
    if not all_counts:
        return MetricNumbers()
    first, *others = all_counts
    counts = [sum(column) for column in zip(*all_counts, strict=True)] if others else first
    facts: dict[str, Any] = {
        name: count if name == "cost" else int(count)
        for name, count in zip(COUNTS, counts, strict=False)  # durations come after them
    }
    if not facts["cost"] and facts["unpriced"]:
        facts["cost"] = None
    durations = counts[len(COUNTS) :]
    return MetricNumbers(**facts, p50_ms=quantile_ms(durations, 0.5), p95_ms=quantile_ms(durations, 0.95))


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _texts(value: str | Sequence[str]) -> frozenset[str]:
    return frozenset([value] if isinstance(value, str) else value)


def _range(text: str) -> MetricRange:
    return _one_of(text, get_args(MetricRange), "range")


def _split(text: str | None) -> MetricSplit | None:
    return None if text is None else _one_of(text, get_args(MetricSplit), "split")


def _one_of(text: str, known: Sequence[Any], what: str) -> Any:
    if text in known:
        return text
    raise InvalidArguments(
        f"{text[:40]!r} is no {what} of metrics",
        hint=did_you_mean(text[:40], [*known]) or f"there are: {', '.join(known)}",
    )
