"""Charts as a server draws them: marks in SVG, all words in HTML around it. Knows numbers, not where from.

Only digits get into the SVG, so nothing that anybody wrote can. What a chart shows stands in a table behind
it too, which is also what a pointer or the arrow keys read out (`charts.js`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor, log10

from markupsafe import Markup

from dragoman.console.pages import duration, money, number
from dragoman.hub.statistics import MetricNumbers, MetricPoint, MetricSeries

Values = Sequence[float | None]
Worded = Callable[[float | None], str]
_LABELS = 6
_SPARK = (84, 22)
_EDGE = 2


@dataclass(frozen=True, slots=True)
class Legend:
    """One colour of a chart and what it stands for; `mark` is a class of the stylesheet."""

    mark: str
    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    key: str
    title: str
    legend: tuple[Legend, ...]
    marks: Markup
    y: tuple[str, ...]
    x: tuple[str, ...]
    right: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    is_empty: bool = False
    note: str = ""
    """Words over what is marked besides the numbers."""


# What is drawn of numbers over time


def charts_of(series: MetricSeries) -> tuple[Chart, ...]:
    return (calls_chart(series), latency_chart(series), spending_chart(series), runs_chart(series))


def calls_chart(series: MetricSeries) -> Chart:
    ok = [point.numbers.calls - point.numbers.errors for point in series.points]
    errors = [point.numbers.errors for point in series.points]
    total = series.total
    return _bars(
        series,
        "calls",
        "Calls and errors",
        (
            (ok, "c1", "ok", number(total.calls - total.errors)),
            (errors, "c4", "errors", number(total.errors)),
        ),
    )


def latency_chart(series: MetricSeries, down_since: datetime | None = None) -> Chart:
    """With a band from when there has been no connection, where that is part of the range."""
    p50 = [point.numbers.p50_ms for point in series.points]
    p95 = [point.numbers.p95_ms for point in series.points]
    top = _ceiling([*p50, *p95], least=10)
    is_down = down_since is not None and down_since < series.end
    marks = (
        _grid()
        + _down(series, down_since)
        + _area(p95, top, "c1")
        + _line(p95, top, "c1")
        + _line(p50, top, "c2")
    )
    return Chart(
        key="latency",
        title="Latency",
        legend=(
            Legend("line c2", "p50", duration(series.total.p50_ms)),
            Legend("line c1", "p95", duration(series.total.p95_ms)),
        ),
        marks=marks,
        y=_scale(top, duration),
        x=_times(series),
        columns=("Time", "p50", "p95"),
        rows=_rows(series, (p50, duration), (p95, duration)),
        is_empty=not is_down and not any(value is not None for value in p95),
        note=f"no connection since {_moment(series, down_since)}" if is_down and down_since else "",
    )


def spending_chart(series: MetricSeries) -> Chart:
    tokens = [point.numbers.tokens for point in series.points]
    spent: list[float | None] = []
    for point in series.points:
        spent.append((spent[-1] or 0.0 if spent else 0.0) + (point.numbers.cost or 0.0))
    top, most = _ceiling(tokens, least=10), _ceiling(spent, least=0.01)
    return Chart(
        key="spending",
        title="Tokens and cost",
        legend=(
            Legend("c2", "tokens", short(series.total.tokens)),
            Legend("line c3", "cost", cost(series.total)),
        ),
        marks=_grid() + _columns([(tokens, "c2")], top) + _line(spent, most, "c3"),
        y=_scale(top, short),
        right=_scale(most, money),
        x=_times(series),
        columns=("Time", "Tokens", "Cost so far"),
        rows=_rows(series, (tokens, number), (spent, money)),
        is_empty=not any(tokens),
    )


def runs_chart(series: MetricSeries) -> Chart:
    done = [point.numbers.runs - point.numbers.failed_runs for point in series.points]
    failed = [point.numbers.failed_runs for point in series.points]
    total = series.total
    return _bars(
        series,
        "runs",
        "Runs",
        (
            (done, "c5", "ended", number(total.runs - total.failed_runs)),
            (failed, "c4", "failed", number(total.failed_runs)),
        ),
    )


def reconnects_chart(series: MetricSeries) -> Chart:
    reconnects = [point.numbers.reconnects for point in series.points]
    told = ((reconnects, "c3", "reconnects", number(series.total.reconnects)),)
    return _bars(series, "reconnects", "Reconnects", told)


def spark(points: Sequence[MetricPoint]) -> Markup:
    """Calls as a line of the height of a word; empty where there were none."""
    values = [point.numbers.calls for point in points]
    if not any(values):
        return Markup("")
    width, height = _SPARK
    top, step = max(values), width / max(1, len(values) - 1)
    room = height - 2 * _EDGE
    places = [
        f"{place * step:.1f} {height - _EDGE - value / top * room:.1f}" for place, value in enumerate(values)
    ]
    line = "M" + "L".join(places)
    return Markup('<path class="area" d="{0}V{1}H0Z"/><path d="{0}"/>').format(line, height)


def cost(numbers: MetricNumbers) -> str:
    """In dollars; what nobody knows the price of is said, and not counted as nothing."""
    if numbers.cost is None:
        return "unknown"
    return f"over {money(numbers.cost)}" if numbers.unpriced else money(numbers.cost)


def short(value: float | None) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value is not None and value >= size:
            return f"{value / size:.1f}".removesuffix(".0") + unit
    return number(value)


# Marks: the drawing is 100 wide and 100 high, whatever the page makes of it


def _bars(
    series: MetricSeries, key: str, title: str, told: Sequence[tuple[Sequence[int], str, str, str]]
) -> Chart:
    """Stacked: the first of what is `told` stands at the bottom."""
    together = [sum(column) for column in zip(*(values for values, *_ in told), strict=True)]
    top = _ceiling(together, least=4)
    # Errors at the bottom, where even a few are seen.
    stacked = [(values, mark) for values, mark, *_ in reversed(told)]
    return Chart(
        key=key,
        title=title,
        legend=tuple(Legend(mark, label, value) for _, mark, label, value in told),
        marks=_grid() + _columns(stacked, top),
        y=_scale(top, short),
        x=_times(series),
        columns=("Time", *(label for *_, label, _ in told)),
        rows=_rows(series, *((values, number) for values, *_ in told)),
        is_empty=not any(together),
    )


def _down(series: MetricSeries, since: datetime | None) -> Markup:
    if since is None or since >= series.end:
        return Markup("")
    share = (since - series.start) / (series.end - series.start)
    left = min(max(100 * share, 0.0), 98.5)  # a moment ago is seen, too
    return Markup('<path class="down" d="M{} 0H100V100H{}Z"/>').format(f"{left:.2f}", f"{left:.2f}")


def _grid() -> Markup:
    return Markup('<path class="g" d="M0 0H100M0 50H100M0 100H100"/>')


def _columns(stacked: Sequence[tuple[Sequence[float], str]], top: float) -> Markup:
    count = len(stacked[0][0])
    width, below = 100 / max(1, count), [0.0] * count
    marks = Markup("")
    for values, mark in stacked:
        drawn: list[str] = []
        for place, value in enumerate(values):
            if value:
                height = max(100 * value / top, 0.8)
                foot = 100 - below[place]
                left = place * width + width * 0.12
                drawn.append(f"M{left:.2f} {foot:.1f}h{width * 0.76:.2f}v{-height:.1f}h{-width * 0.76:.2f}z")
                below[place] += height
        if drawn:
            marks += Markup('<path class="bar {}" d="{}"/>').format(mark, "".join(drawn))
    return marks


def _line(values: Values, top: float, mark: str) -> Markup:
    drawn = "".join(_path(part, len(values), top) for part in _unbroken(values))
    return Markup('<path class="stroke {}" d="{}"/>').format(mark, drawn) if drawn else Markup("")


def _area(values: Values, top: float, mark: str) -> Markup:
    drawn: list[str] = []
    for part in _unbroken(values):
        if len(part) > 1:
            first, last = (_middle(place, len(values)) for place in (part[0][0], part[-1][0]))
            drawn.append(f"{_path(part, len(values), top)}L{last:.2f} 100L{first:.2f} 100Z")
    return Markup('<path class="area {}" d="{}"/>').format(mark, "".join(drawn)) if drawn else Markup("")


def _unbroken(values: Values) -> list[list[tuple[int, float]]]:
    """Where nothing is known the line breaks."""
    parts: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            parts.append([])
        else:
            parts[-1].append((place, value))
    return [part for part in parts if part]


def _path(part: Sequence[tuple[int, float]], count: int, top: float) -> str:
    points = [f"{_middle(place, count):.2f} {100 - 100 * value / top:.1f}" for place, value in part]
    return f"M{points[0]}h.6" if len(points) == 1 else "M" + "L".join(points)


def _middle(place: int, count: int) -> float:
    return (place + 0.5) * 100 / count


def _ceiling(values: Values, *, least: float) -> float:
    """The end of the scale: a round number that halves well."""
    highest = max((value for value in values if value is not None), default=0.0)
    highest = max(highest, least)
    size = 10.0 ** floor(log10(highest))
    return next(part * size for part in (1, 2, 4, 6, 8, 10) if part * size >= highest * 0.999)


def _scale(top: float, worded: Worded) -> tuple[str, ...]:
    return (*(worded(value).replace(".0 ", " ").removesuffix(".00") for value in (top, top / 2)), "0")


# Words


def _times(series: MetricSeries) -> tuple[str, ...]:
    every = ceil(len(series.points) / _LABELS)
    return (*(clock(series, point.start) for point in series.points[::every]), "now")


def _moment(series: MetricSeries, when: datetime) -> str:
    return f"{when:%H:%M}" if when >= series.start else f"{when:%d %b %H:%M}"


def clock(series: MetricSeries, when: datetime) -> str:
    return f"{when:%d %b}" if series.last in ("7d", "30d") else f"{when:%H:%M}"


def _rows(series: MetricSeries, *told: tuple[Values, Worded]) -> tuple[tuple[str, ...], ...]:
    times = [f"{point.start:%d %b %H:%M} UTC" for point in series.points]
    columns = [[worded(value) for value in values] for values, worded in told]
    return tuple(zip(times, *columns, strict=True))
