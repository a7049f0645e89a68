import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from dragoman.telemetry.metrics import ConnectorCounters
from dragoman.telemetry.prometheus import ConnectorState, PrometheusExposition


@given(st.lists(st.floats(0.2, 600_000), min_size=1, max_size=200))
def test_a_quantile_is_near_to_the_true_one(durations: list[float]) -> None:
    tally = ConnectorCounters("local", "time")
    for duration in durations:
        tally.finished(True, duration, 1.0, None)
    view = tally.view("c")
    ordered = sorted(durations)
    for share, seen in ((0.5, view.p50_ms), (0.95, view.p95_ms)):
        place = next(n for n in range(1, len(ordered) + 1) if n >= share * len(ordered))
        assert seen == pytest.approx(ordered[place - 1], rel=0.11)


def test_the_moving_average_follows_the_newest_calls() -> None:
    tally = ConnectorCounters("local", "time")
    tally.finished(True, 100.0, 1.0, None)
    assert tally.view("c").average_ms == 100.0
    for _ in range(50):
        tally.finished(True, 10.0, 1.0, None)
    average = tally.view("c").average_ms
    assert average is not None
    assert 10 < average < 12


def test_without_any_call_nothing_is_claimed() -> None:
    view = ConnectorCounters("local", "time").view("c")
    assert (view.average_ms, view.p50_ms, view.p95_ms, view.reuse_rate, view.connect_last_ms) == (None,) * 5
    assert (view.last_error, view.last_error_at, view.last_call_at) == (None,) * 3


def test_stored_numbers_come_back_and_strange_ones_start_at_zero() -> None:
    tally = ConnectorCounters("local", "time")
    tally.finished(True, 5.0, 100.0, None)
    tally.finished(False, 70.0, 200.0, "timeout: no answer")
    tally.connected(30.0, is_reconnect=True)
    again = ConnectorCounters.restored(json.loads(json.dumps(tally.numbers())))
    assert again.view("c") == tally.view("c")
    odd: dict[str, Any] = {"succeeded": "many", "failed": None, "unknown": 1, "buckets": {"9999": 1}}
    assert ConnectorCounters.restored(odd).view("c").calls == 0


def test_prometheus_reads_what_is_written() -> None:
    tally = ConnectorCounters("local", 'we"ird\n')
    for duration in (1.0, 20.0, 20_000_000.0):
        tally.finished(True, duration, 1.0, None)
    tally.finished(False, 5.0, 1.0, "x")
    tally.rejected = 2
    tally.connected(5.0, is_reconnect=True)
    states = [ConnectorState("local", "time", "connected")] * 2 + [ConnectorState("local", "time", "error")]
    exposition = PrometheusExposition(lambda: [tally.view("c")], list, lambda: states, lambda: 7)
    families = {family.name: family for family in text_string_to_metric_families(exposition.text().decode())}
    calls = {sample.labels["outcome"]: sample.value for sample in families["dragoman_calls"].samples}
    assert calls == {"succeeded": 3, "failed": 1, "rejected": 2, "cached": 0}
    assert families["dragoman_calls"].samples[0].labels["connector"] == 'we"ird\n'
    assert families["dragoman_calls"].samples[0].name == "dragoman_calls_total"
    durations = families["dragoman_call_duration_seconds"].samples
    buckets = [sample.value for sample in durations if sample.name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 4
    assert buckets[-2] == 3
    total = next(sample.value for sample in durations if sample.name.endswith("_sum"))
    assert total == pytest.approx(20_000.026)
    by_state = {
        sample.labels["state"]: sample.value for sample in families["dragoman_connector_state"].samples
    }
    assert by_state == {"connected": 2, "error": 1}
    assert families["dragoman_reconnects"].samples[0].value == 1
    assert families["dragoman_dropped_records"].samples[0].value == 7
