"""State on disk: whole or not at all, whoever is killed, and shared by processes."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patience import patient
from servers.samples import SERVERS
from state import State, moment, weekday

WRITER = """
import sys
from pathlib import Path
from state import State
state = State(Path(sys.argv[1]), lambda: {"numbers": [], "padding": "x" * 200_000})
while True:
    with state.changing() as document:
        document["numbers"].append(len(document["numbers"]))
    print(len(document["numbers"]), flush=True)
"""


def test_a_writer_that_is_killed_leaves_a_whole_document_with_all_it_told_of(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    told = 0
    for kill in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], cwd=SERVERS, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        told = int(writer.stdout.readline())
        time.sleep(0.003 * kill)  # to be killed at another place every time
        writer.kill()
        rest = writer.stdout.read().split("\n")[:-1]
        writer.stdout.close()
        writer.wait(patient(10))
        told = max([told, *(int(line) for line in rest)])
        numbers = json.loads(path.read_text())["numbers"]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) in (told, told + 1)
    State(path, dict).read()
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left <= {"state.json", "state.json.lock", ".state.json.new"}


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    state = State(tmp_path / "state.json", lambda: {"numbers": [1]})

    def change() -> None:
        with state.changing() as document:
            document["numbers"].append(2)
            raise KeyError("no")

    with pytest.raises(KeyError):
        change()
    assert state.read() == {"numbers": [1]}


def test_times_are_read_as_people_write_them() -> None:
    assert moment("2026-03-04") == moment("2026-03-04T00:00:00Z") == moment("2026-03-04T01:00:00+01:00")
    assert moment(weekday(7)) - moment(weekday(0)) == moment("2026-03-11") - moment("2026-03-04")
    with pytest.raises(ValueError, match="'soon' is neither"):
        moment("soon")
