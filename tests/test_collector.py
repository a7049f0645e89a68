"""The collector is held off while much is made, and afterwards works as it did before."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dragoman import collector


@pytest.fixture
def collections() -> Iterator[list[str]]:
    found: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        found.append(phase)

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


def make_cycles() -> None:
    for _ in range(2 * gc.get_threshold()[0]):
        cycle: list[object] = []
        cycle.append(cycle)


def test_nothing_is_collected_inside_and_something_afterwards(collections: list[str]) -> None:
    with collector.paused():
        collections.clear()  # what was looked for between the fixture and here
        make_cycles()
        with collector.paused():
            pass
        make_cycles()
        assert not collections, "an inner pause ended the outer one"
    make_cycles()
    assert collections


def test_a_failure_ends_the_pause_and_who_had_stopped_the_collector_has_it_stopped_still() -> None:
    with pytest.raises(ValueError), collector.paused():
        raise ValueError
    assert gc.isenabled()
    gc.disable()
    try:
        with collector.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


LOADS = """
import gc
before = len(gc.get_objects())
from dragoman import Hub
assert gc.isenabled() and not gc.get_freeze_count()
young = len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1))
made = len(gc.get_objects()) - before
assert young < made / 10, f"{young:,} of {made:,} objects are walked through next"
"""


def test_a_program_that_has_loaded_the_hub_has_the_collector_it_had_and_nothing_to_walk_through() -> None:
    subprocess.run([sys.executable, "-c", LOADS], check=True)
