"""`dragoman demo`: everything at once, from the package alone, and nothing of it stays."""

import os
import re
import signal
from pathlib import Path

import psutil
import pytest
from command_line import Command, dragoman_process, errors_of, output_of

from patience import patient


@pytest.mark.slow
def test_the_demonstration_shows_everything_and_leaves_nothing(
    dragoman: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {*tmp_path.rglob("*")}
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/not-for-the-demonstration")
    with dragoman_process("demo", cwd=tmp_path, env=os.environ | {"DRAGOMAN_MODEL": "offline"}) as demo:
        shown = ""
        while "Ctrl-C stops everything" not in shown:
            line = output_of(demo).readline()
            assert line, f"it ended: {shown}{errors_of(demo).read()}"
            shown += line
        for fact in ("/sign-in?code=", "● connected       6", '"count": 2', "2 emails, and there are more"):
            assert fact in shown
        (place,) = re.findall(r"export DRAGOMAN_HOME=(\S+)", shown)
        monkeypatch.setenv("DRAGOMAN_HOME", place)
        monkeypatch.delenv("DRAGOMAN_DATABASE_URL")
        assert "issues" in dragoman("call", "tracker__list_issues", "repository=xyne").out
        started = psutil.Process(demo.pid).children(recursive=True)
        assert len(started) >= 5
        demo.send_signal(signal.SIGINT)
        assert demo.wait(patient(30)) == 0
    assert psutil.wait_procs(started, timeout=patient(10))[1] == []
    assert {*tmp_path.rglob("*")} == before
