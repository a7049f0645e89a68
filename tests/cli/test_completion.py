"""TAB in a real shell: commands, options, and the names that a running service has."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Command, raw, running_service

from patience import patient


def completed(*words: str) -> list[str]:
    """What bash offers after these words, of which the last is not finished."""
    *whole, begun = ("dragoman", *words)
    script = f"""
eval "$(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1 dragoman --show-completion bash)"
COMP_WORDS=({shlex.join([*whole, begun])}) COMP_CWORD={len(whole)}
_dragoman_completion dragoman
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split()


@pytest.mark.slow
def test_the_shell_completes_commands_and_the_names_of_a_running_service(dragoman: Command) -> None:
    with running_service():
        assert dragoman("connectors", "add", "raw", *raw()).code == 0
        assert completed("conn") == ["connectors", "connect"]
        assert completed("connectors", "show", "r") == ["raw"]
        assert completed("call", "mcp_raw_ec") == ["mcp_raw_echo"]


def test_without_a_service_nothing_is_opened_for_a_name(home: Path) -> None:
    assert completed("connectors", "show", "") == []
    assert not home.exists()
