"""The example programs as a newcomer runs them: one after the other, with one home, without a key."""

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from docs.forked_programs import forked_programs
from dragoman.examples import examples
from patience import patient

PROGRAMS = sorted(path.name for path in examples().glob("[0-9]*.py"))
# What each says at the end that shows what it is for.
SAYS = {
    "01_first_call.py": ["Re: Budget table"],
    "02_connector.py": ["added", "unchanged", "mcp_inbox_send-email changes", "must be a whole number"],
    "03_openapi.py": ["create_task", "Water the plants"],
    "04_functions.py": ["180.0", "invalid_arguments", "'maximum': 100"],
    "05_many_users.py": ["ann: Sun in Oslo", "ann: limit_reached", "bob: []"],
    "06_search.py": ["delete_parcel", "archive_meeting"],
    "07_code.py": ["1170.0", "41 calls", "code_error"],
    "08_approvals.py": ["asked: delete_file {'name': 'thesis.txt'}", "draft.txt is gone", "approval_refused"],
    "09_agent.py": ["done / ", "calls: 1"],
    "10_openai_and_anthropic.py": [f"{one}: The tool says: Sun in Rome" for one in ("openai", "anthropic")],
    "11_pydantic_ai_and_langchain.py": ['pydantic-ai: {"weather":"Sun in a"}', "langchain: Sun in Rome"],
    "12_progress_and_questions.py": ["2 of 2: writing it down", "booking asks: For whom", "booked for Ada"],
    "13_resources_and_prompts.py": ["booking+booking://menu", "Risotto", "booking__invite", "dinner for Ada"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("newcomer")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    with forked_programs(tmp_path_factory.mktemp("programs")) as found:
        yield found


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_runs_and_shows_what_it_is_for(program: str, folder: Path, programs: Path) -> None:
    path = examples() / program
    assert 5 <= len(path.read_text().splitlines()) <= 60
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    done = subprocess.run(
        [str(programs / "python"), str(path)],
        cwd=folder,
        env={**kept, "DRAGOMAN_HOME": str(folder / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert [words for words in SAYS[program] if words not in done.stdout] == []


def test_the_page_of_the_examples_has_a_line_for_each() -> None:
    page = (examples() / "README.md").read_text()
    assert [name for name in PROGRAMS if f"[{name}]({name})" not in page] == []
