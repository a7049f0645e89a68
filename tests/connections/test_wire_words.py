"""The pure parts under every wire: events, bytes, faults, pauses, environments."""

import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.connections.connection import explained
from dragoman.connections.environment import PASSED_ON, child_environment, expanded
from dragoman.connections.retry import RetrySchedule, backoff
from dragoman.connections.sse_events import EventDecoder, EventTooLarge, ServerEvent
from dragoman.connections.wire import decode
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import ReconnectPolicy, RetryPolicy
from dragoman.errors import ConnectTimeout, InvalidConfig, ProtocolFault, Uncertain, Unreachable

STREAM = (
    b"event: endpoint\r\ndata: /messages\r\n\r\n"
    b"id: 7\nretry: 20\ndata: one\ndata: two\n\n"
    b": note\n\n"
    b"data:x\r\r"
)
EVENTS = [
    ServerEvent("endpoint", b"/messages", None, None),
    ServerEvent("message", b"one\ntwo", "7", 20),
    ServerEvent("message", b"x", None, None),
]


def tried(count: int) -> RetrySchedule:
    tries = RetrySchedule(RetryPolicy())
    tries.count = count
    return tries


@given(st.lists(st.integers(0, len(STREAM)), max_size=12).map(sorted))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    decoder = EventDecoder(limit=10_000)
    edges = [0, *cuts, len(STREAM)]
    found = [event for a, b in pairwise(edges) for event in decoder.feed(STREAM[a:b])]
    found += decoder.feed(b"\n")  # the last CR might have been half a line end
    assert found == EVENTS


def test_an_event_over_the_limit_is_refused_before_it_is_whole() -> None:
    decoder = EventDecoder(limit=100)
    with pytest.raises(EventTooLarge):
        for _ in range(20):
            decoder.feed(b"data: " + b"x" * 10)


def test_many_small_events_never_reach_the_limit() -> None:
    decoder = EventDecoder(limit=100)
    assert sum(len(decoder.feed(b"data: x\n\n")) for _ in range(1000)) == 1000


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'{"a": "\xff\xfe"}', {"a": "��"}),
        (b'{"a": "\\ud800"}', {"a": "?"}),
        (b'{"a": NaN, "b": Infinity}', {"a": None, "b": None}),
    ],
)
def test_what_servers_really_send_is_mended(line: bytes, value: object) -> None:
    assert decode(line) == value


@pytest.mark.parametrize("line", [b"", b"starting up...", b'{"a": ', b"\xff\xff"])
def test_garbage_is_no_message(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)


@pytest.mark.parametrize("kind", ["lost", "timeout", "server_error", "garbled"])
def test_an_unknown_outcome_of_an_unsafe_call_is_uncertain_and_not_repeated(kind: str) -> None:
    fault = WireFault(kind, "it broke")  # pyright: ignore[reportArgumentType]
    assert isinstance(fault.as_error("a/b", safe=False), Uncertain)
    assert not fault.may_be_repeated(safe=False)
    assert tried(1).pause_after(fault, False, left=1000) is None


@pytest.mark.parametrize("kind", ["refused", "session_unknown"])
def test_what_never_ran_is_repeated_even_if_unsafe(kind: str) -> None:
    fault = WireFault(kind, "it broke")  # pyright: ignore[reportArgumentType]
    assert fault.may_be_repeated(safe=False)
    assert not isinstance(fault.as_error("a/b", safe=False), Uncertain)


def test_a_lost_request_that_was_never_sent_is_repeated_at_once() -> None:
    fault = WireFault("lost", "gone", sent=False)
    assert tried(1).pause_after(fault, False, left=1000) == 0.0
    assert isinstance(fault.as_error("a/b", safe=False), Unreachable)


def test_retry_after_takes_the_place_of_the_pause() -> None:
    fault = WireFault("rate_limited", "slow down", retry_after=7.0)
    assert tried(1).pause_after(fault, True, left=1000) == 7.0
    assert tried(1).pause_after(fault, True, left=5) is None, "the deadline comes first"
    assert tried(1).pause_after(fault, False, left=1000) is None


def test_pauses_grow_to_their_cap_and_end() -> None:
    tries = RetrySchedule(RetryPolicy(tries=6, delay=1, factor=3, cap=10))
    found: list[float | None] = []
    for tries.count in range(1, 7):
        found.append(tries.pause(left=1000))
    assert found == [1, 3, 9, 10, 10, None]


def test_the_pause_after_a_repeat_at_once_is_the_longer_one() -> None:
    """A server that restarts needs its second or two: three tries within one would all be too early."""
    tries = tried(1)
    assert tries.pause_after(WireFault("lost", "gone"), True, left=1000) == 0.0
    tries.count = 2
    assert tries.pause_after(WireFault("refused", "not yet"), True, left=1000) == 2.0


def test_backoff_grows_to_half_a_minute_and_never_ends() -> None:
    policy = ReconnectPolicy()
    assert backoff(policy, 0) == 0
    assert 0.8 < (backoff(policy, 1) or 0) < 1.2
    assert 3.3 < (backoff(policy, 3) or 0) < 4.7
    assert all(25 < (backoff(policy, attempt) or 0) < 35 for attempt in (6, 60, 6000))


def test_backoff_is_what_the_connector_says_and_ends_with_its_last_attempt() -> None:
    policy = ReconnectPolicy(attempts=3, delay=10, factor=3, cap=60)
    assert 8 < (backoff(policy, 1) or 0) < 12
    assert 25 < (backoff(policy, 2) or 0) < 35
    assert backoff(policy, 3) is None


def test_the_one_cause_is_found_in_nested_groups() -> None:
    nested = ExceptionGroup("a", [ExceptionGroup("b", [WireFault("refused", "no one there", sent=False)])])
    assert explained(nested, 1.0, ()).message == "no one there"


def test_a_slow_start_shows_what_the_server_said() -> None:
    error = explained(TimeoutError(), 2.0, ("loading model", "still loading"))
    assert isinstance(error, ConnectTimeout)
    assert "loading model | still loading" in error.message


def test_anything_else_is_a_server_that_does_not_speak_mcp() -> None:
    assert isinstance(explained(RuntimeError("odd"), 1.0, ()), ProtocolFault)


def test_references_to_the_environment_are_expanded() -> None:
    assert expanded("a${X}b${Y:-c}", {"X": "1"}) == "a1bc"
    with pytest.raises(InvalidConfig, match="MISSING is not set"):
        expanded("${MISSING}", {})


def test_a_child_gets_the_allow_list_and_what_its_connector_sets() -> None:
    own = dict.fromkeys(PASSED_ON, "x") | {"PATH": "/usr/bin", "AWS_SECRET": "canary"}
    child = child_environment(own, {"TOKEN": "t"})
    assert child["TOKEN"] == "t"
    assert "AWS_SECRET" not in child
    assert set(PASSED_ON) <= set(child)
    assert child["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
