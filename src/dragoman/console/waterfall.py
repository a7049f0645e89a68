"""A run as a waterfall: a bar for all that took time, nested as it happened. Knows timelines, not pages.

Waiting for people takes hours where work takes seconds: it may be drawn shorter than it was (`shortened`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dragoman.names import dotted_name

if TYPE_CHECKING:
    from dragoman.runs.timeline import Timeline, TimelineEntry

_CODE = frozenset({"run_code"})
_DEEPEST = 4
_SHORT = 0.08  # of the whole width for one wait
_TICKS = 5
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`start` and `took` are milliseconds of the run; `x` and `width` percent of the drawing."""

    id: str
    kind: str
    label: str
    note: str = ""
    depth: int = 0
    start: float = 0.0
    took: float = 0.0
    attempts: int = 1
    is_bad: bool = False
    is_open: bool = False
    x: float = 0.0
    width: float = 0.0

    @property
    def is_late(self) -> bool:
        """Whether its words stand before it: behind it there is no room."""
        return self.x + self.width > 82


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    bars: tuple[Bar, ...]
    bands: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    total: float
    waited: float
    retries: int
    agents: int

    @property
    def worked(self) -> float:
        return max(0.0, self.total - self.waited)


def waterfall_of(timeline: "Timeline", *, shortened: bool = True, total: float | None = None) -> Waterfall:
    """`total` milliseconds are drawn where two are compared."""
    run = timeline.run
    began, now = run.started_at or run.created_at, datetime.now(UTC)
    bars = [*_of_run(timeline, began, now, 0)]
    length = max([1.0, total or 0.0, *(bar.start + bar.took for bar in bars)])
    waits = _merged([(bar.start, bar.start + bar.took) for bar in bars if bar.kind == "wait"])
    scale = _Scale(length, waits if shortened else [])
    drawn = tuple(
        replace(
            bar, x=scale.at(bar.start), width=max(0.5, scale.at(bar.start + bar.took) - scale.at(bar.start))
        )
        for bar in bars
    )
    bands = tuple(
        Bar(id="", kind="wait", label="", x=scale.at(start), width=scale.at(end) - scale.at(start))
        for start, end in waits
    )
    return Waterfall(
        bars=drawn,
        bands=bands,
        ticks=tuple(_ticks(length, scale, waits if shortened else [])),
        total=max((bar.start + bar.took for bar in bars), default=0.0),
        waited=sum(end - start for start, end in waits),
        retries=sum(max(0, bar.attempts - 1) for bar in bars),
        agents=len({bar.label for bar in bars if bar.kind == "agent"}),
    )


def entry_of(timeline: "Timeline", step: str) -> "tuple[Timeline, TimelineEntry | None] | None":
    """What a bar stands for: the run, and the entry of its timeline unless it is the run itself."""
    if timeline.run.id == step:
        return timeline, None
    for number, entry in enumerate(timeline.moments, 1):
        if f"{timeline.run.id}-{number}" == step:
            return timeline, entry
        for child in entry.runs:
            if found := entry_of(child, step):
                return found
    return None


def _of_run(timeline: "Timeline", began: datetime, now: datetime, depth: int) -> Iterator[Bar]:
    run = timeline.run
    start = _since(began, run.started_at or run.created_at)
    end = _since(began, run.finished_at or now)
    yield Bar(
        id=run.id,
        kind="agent",
        label=run.agent or "several agents",
        depth=min(depth, _DEEPEST),
        start=start,
        took=max(0.0, end - start),
        is_bad=run.status == "failed",
        is_open=run.finished_at is None,
    )
    entries = [(f"{run.id}-{number}", entry) for number, entry in enumerate(timeline.moments, 1)]
    for id, entry in entries:
        if (bar := _of_entry(id, entry, began, now, depth + 1)) is not None:
            yield bar
        inner = depth + (2 if bar is not None else 1)
        for child in entry.runs:
            yield from _of_run(child, began, now, inner)


def _of_entry(id: str, entry: "TimelineEntry", began: datetime, now: datetime, depth: int) -> Bar | None:
    facts, at = entry.details, _since(began, entry.time)
    depth = min(depth, _DEEPEST)
    match entry.kind:
        case "model":
            took = float(facts.get("duration_ms") or 0.0)
            wants = facts.get("calls")
            name, note = str(facts.get("model") or "model"), "" if wants else "answer"
            return Bar(
                id=id, kind="model", label=name, note=note, depth=depth, start=max(0.0, at - took), took=took
            )
        case "call":
            return _of_call(id, entry, at, _since(began, now), depth)
        case "approval" | "question":
            is_open = facts.get("status") == "pending"
            waited = _since(began, now) - at if is_open else float(facts.get("waited_ms") or 0.0)
            label = "Approval" if entry.kind == "approval" else "Question"
            note = str(facts.get("status") or "")
            return Bar(
                id=id,
                kind="wait",
                label=label,
                note=note,
                depth=depth,
                start=at,
                took=waited,
                is_open=is_open,
            )
        case _:
            return None


def _of_call(id: str, entry: "TimelineEntry", at: float, now: float, depth: int) -> Bar:
    facts: Any = entry.details
    is_open = facts.get("status") == "running"
    tool = str(facts.get("tool") or "call")
    return Bar(
        id=id,
        kind="code" if tool in _CODE else "call",
        label=dotted_name(str(facts.get("title") or tool)),
        note="" if facts.get("title") in (None, tool) else tool,
        depth=depth,
        start=at,
        took=now - at if is_open else float(facts.get("duration_ms") or 0.0),
        attempts=int(facts.get("attempts") or 1),
        is_bad=facts.get("status") in ("failed", "uncertain"),
        is_open=is_open,
    )


class _Scale:
    """Where a moment lies, in percent: time runs evenly but through waits, which are a stripe each."""

    def __init__(self, length: float, waits: Sequence[tuple[float, float]]) -> None:
        work = max(1.0, length - sum(end - start for start, end in waits))
        # A wait that is short anyway stays as it is.
        self._waits = [(start, end) for start, end in waits if end - start > _SHORT * work]
        self._work = max(1.0, length - sum(end - start for start, end in self._waits))
        self._room = 100.0 - 100.0 * _SHORT * len(self._waits)
        if self._room < 30:  # so many that nothing would be left for the work
            self._waits, self._work, self._room = [], max(1.0, length), 100.0

    def at(self, moment: float) -> float:
        worked, stripes = moment, 0.0
        for start, end in self._waits:
            if moment > start:
                part = min(moment, end) - start
                worked -= part
                stripes += part / (end - start)
        return min(100.0, self._room * worked / self._work + 100.0 * _SHORT * stripes)


def _ticks(length: float, scale: _Scale, waits: Sequence[tuple[float, float]]) -> Iterator[Tick]:
    work = length - sum(end - start for start, end in waits)
    step = next(
        (one * unit for unit in (1, 1000) for one in _STEPS if one * unit * _TICKS >= work), _STEPS[-1] * 1000
    )
    moment, last = 0.0, -20.0
    while moment < length:
        if not any(start < moment < end for start, end in waits) and last + 9 < scale.at(moment) < 86:
            yield Tick(last := scale.at(moment), _worded(moment))
        inside = next((end for start, end in waits if start <= moment < end), None)
        moment = moment + step if inside is None else (inside // step + 1) * step
    yield Tick(100.0, _worded(length))


def _worded(milliseconds: float) -> str:
    if milliseconds and milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min"


def _merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _since(began: datetime, moment: datetime) -> float:
    return max(0.0, (moment - began).total_seconds() * 1000)
