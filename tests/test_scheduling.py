"""A test that takes its worker along fails by itself: every other test still runs, once."""

import os
import subprocess
import sys
from pathlib import Path

from patience import patient
from scheduling import DEAR, TOGETHER

TESTS = Path(__file__).parent
CONFTEST = """
import os, time
from pathlib import Path
import pytest
from scheduling import ByTestOrModule
from xdist.workermanage import WorkerController

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False
    return ByTestOrModule(config, log)

# The last report of the worker that ends is read when it has ended, and before its end is known.
WorkerController.shutting_down = property(lambda self: self._shutdown_sent)

def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ and (report.nodeid[-3:], report.when) == ("[1]", "call"):
        while "3" not in Path("ran").read_text().split():
            time.sleep(0.01)
        time.sleep(0.1)
"""
MODULE = """
import os, time
from pathlib import Path
import pytest

LATE = os.environ["PYTEST_XDIST_WORKER"] not in ("gw0", "gw1")

@pytest.mark.parametrize("number", range(12))
def test_one(number):
    with Path("ran").open("a") as file:
        file.write(f"{number}\\n")
    if number == 3:
        os._exit(1)
    if LATE:
        with Path("late").open("a") as file:
            file.write("x")
    elif number > 3:
        # The worker that replaces the other works beside this one, not after it.
        while not Path("late").exists() or Path("late").stat().st_size < 2:
            time.sleep(0.01)
"""


def test_a_worker_that_ends_takes_one_test_along(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_module.py").write_text(MODULE)
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    words = ["-n", "2", "-q", "--rootdir", ".", "--disable-plugin-autoload", "-p", "xdist.plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "test_module.py"],
        cwd=tmp_path,
        env={**known, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert sorted(map(int, (tmp_path / "ran").read_text().split())) == list(range(12)), done
    assert "1 failed, 11 passed" in done.stdout, done


def test_every_module_that_is_scheduled_by_name_is_there() -> None:
    assert [name for name in (*TOGETHER, *DEAR) if not (TESTS.parent / name).exists()] == []
