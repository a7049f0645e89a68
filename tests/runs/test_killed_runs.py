"""`kill -9` at writes of the journal: no finished call repeated, no result swapped, the answer arrives."""

from collections.abc import Generator
from pathlib import Path

import pytest

from runs.killing import Lives, Scene
from servers.processes import HttpProcess

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300), pytest.mark.slow]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scene]:
    folder = tmp_path_factory.mktemp("scene")
    with (
        HttpProcess(folder, "--folder", str(folder), program="ledger_server.py") as server,
        Lives() as lives,
    ):
        yield Scene(lives, folder, server.url)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_killed_at_any_write_of_its_journal_comes_to_its_end(scene: Scene, moment: str) -> None:
    """Before the write is on disk, and right after.

    What happens within one flush shares a write, so their number varies (10 to 12 on two cores).
    """
    number = 1
    while scene.story(number, moment):
        number += 1
    assert number > 8, "the run wrote less often than a run of this kind does"


def test_a_recipe_is_kept_and_shared_once_whenever_the_process_is_killed(scene: Scene) -> None:
    number = 1
    while scene.recipe(number):
        number += 1
    assert number == 5, "a row and an entry of the trail for each of the two"


def test_a_run_that_repeats_itself_ends_at_the_same_place_whenever_it_was_killed(scene: Scene) -> None:
    number = 1
    while scene.repetition(number):
        number += 1
    assert number > 4, "the run wrote less often than a run of this kind does"


def test_a_long_story_killed_at_any_write_has_one_summary_one_question_and_a_whole_answer(
    scene: Scene, tmp_path: Path
) -> None:
    """Its writes share flushes too: four or five of them on two cores."""
    number = 1
    with HttpProcess(tmp_path, program="asking_server.py") as asking:
        while scene.long_story(number, "after", asking.url):
            number += 1
    assert number > 3, "the run wrote less often than a run of this kind does"
