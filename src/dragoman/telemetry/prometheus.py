"""The numbers as Prometheus reads them. A private registry: nothing global is touched."""

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman.telemetry.metrics import BOUNDS_MS, ConnectorMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LABELS = ("workspace", "connector")
# Every sixth bucket: a factor of three, fine enough for a graph and kind to the one who stores it.
_SHOWN = range(0, len(BOUNDS_MS), 6)


@dataclass(frozen=True, slots=True)
class ConnectorState:
    workspace: str
    connector: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One number with its name, without `dragoman_`. One that only grows is a counter to Prometheus."""

    name: str
    text: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    only_grows: bool = False


def memory_in_use() -> int:
    """Bytes of memory that this process holds; where the system does not say, the most that it ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize()


class PrometheusExposition:
    """Asks for the numbers anew each time it is read. They are this process's since it started, to be summed
    over processes, but for those whose name says `installation`.
    """

    def __init__(
        self,
        metrics: Callable[[], Iterable[ConnectorMetrics]],
        installation: Callable[[], Iterable[ConnectorMetrics]],
        states: Callable[[], Iterable[ConnectorState]],
        dropped_records: Callable[[], int],
        gauges: Iterable[Gauge] = (),
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Numbers(metrics, installation, states, dropped_records, gauges))

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Numbers(Collector):
    def __init__(
        self,
        metrics: Callable[[], Iterable[ConnectorMetrics]],
        installation: Callable[[], Iterable[ConnectorMetrics]],
        states: Callable[[], Iterable[ConnectorState]],
        dropped_records: Callable[[], int],
        gauges: Iterable[Gauge] = (),
    ) -> None:
        self._metrics = metrics
        self._installation = installation
        self._states = states
        self._dropped_records = dropped_records
        self._gauges = gauges

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        views = list(self._metrics())
        yield _calls("dragoman_calls", "Tool calls by outcome", views)
        yield _durations(views)
        yield _counter(
            "reconnects", "Times a lost connection was opened again", views, lambda v: v.reconnects
        )
        yield _counter("connects", "Connections opened", views, lambda v: v.connects)
        yield _counter("connections_reused", "Calls that found a connection open", views, lambda v: v.reused)
        yield _counter(
            "tool_cost_dollars", "Prices of the tools that were called, added up", views, lambda v: v.cost
        )
        yield self._state()
        dropped = CounterMetricFamily(
            "dragoman_dropped_records", "Call records lost because the store could not keep up"
        )
        dropped.add_metric((), self._dropped_records())
        yield dropped
        yield _calls(
            "dragoman_installation_calls",
            "Tool calls by outcome of all processes together, since the connector was added; do not sum over"
            " processes",
            self._installation(),
        )
        for gauge in self._gauges:
            family = CounterMetricFamily if gauge.only_grows else GaugeMetricFamily
            shown = family(f"dragoman_{gauge.name}", gauge.text, labels=[*gauge.labels])
            shown.add_metric([*gauge.labels.values()], gauge.value)
            yield shown

    def _state(self) -> GaugeMetricFamily:
        """A connector may have several connections, one per identity: how many are in each state."""
        family = GaugeMetricFamily(
            "dragoman_connector_state", "Connections of a connector by state", labels=(*_LABELS, "state")
        )
        counts: dict[ConnectorState, int] = {}
        for state in self._states():
            counts[state] = counts.get(state, 0) + 1
        for state, count in counts.items():
            family.add_metric((state.workspace, state.connector, state.state), count)
        return family


def _calls(name: str, text: str, views: Iterable[ConnectorMetrics]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=(*_LABELS, "outcome"))
    for view in views:
        for outcome in ("succeeded", "failed", "rejected", "cached"):
            family.add_metric((view.workspace, view.slug, outcome), getattr(view, outcome))
    return family


def _durations(views: list[ConnectorMetrics]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "dragoman_call_duration_seconds", "How long calls that reached a connector took", labels=_LABELS
    )
    for view in views:
        buckets = [
            (f"{BOUNDS_MS[place] / 1000:.6g}", float(sum(view.buckets[: place + 1]))) for place in _SHOWN
        ]
        buckets.append(("+Inf", float(view.calls)))
        family.add_metric((view.workspace, view.slug), buckets, sum_value=view.total_ms / 1000)
    return family


def _counter(
    name: str, text: str, views: list[ConnectorMetrics], number: Callable[[ConnectorMetrics], float]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"dragoman_{name}", text, labels=_LABELS)
    for view in views:
        family.add_metric((view.workspace, view.slug), number(view))
    return family
