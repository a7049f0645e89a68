"""Where the command does not run, it says so before anything else."""

import subprocess
import sys


def test_on_windows_the_command_says_that_it_does_not_run_there() -> None:
    program = "import sys; sys.platform = 'win32'; from dragoman.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: Dragoman does not run on Windows yet",
        "hint: use it in WSL",
    ]
