"""`kill -9` at writes of the journal: no finished call repeated, no result swapped, the answer arrives."""

from collections.abc import Generator
from pathlib import Path

import pytest

from runs.killing import Lives, Scene
from servers.processes import HttpProcess

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300), pytest.mark.slow]


@pytest.fixture
def scene(tmp_path: Path) -> Generator[Scene]:
    with (
        HttpProcess(tmp_path, "--folder", str(tmp_path), program="ledger_server.py") as server,
        Lives() as lives,
    ):
        yield Scene(lives, tmp_path, server.url)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_killed_at_any_write_of_its_journal_comes_to_its_end(scene: Scene, moment: str) -> None:
    """Before the write is on disk, and right after.

    What happens within one flush shares a write, so their number varies (10 to 12 on two cores).
    """
    number = 1
    while scene.story(number, moment):
        number += 1
    assert number > 8, "the run wrote less often than a run of this kind does"
