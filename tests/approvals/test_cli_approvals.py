"""`dragoman approvals` and `dragoman tools set`, each command in this process on a home of its own."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from asking import SUM, WRITES, open_asking

from dragoman import Caller
from dragoman.cli.root import run
from dragoman.telemetry.redaction import Redactor

AGENT = Caller(agent="mailer", way="agent")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("DRAGOMAN_URL", "DRAGOMAN_TOKEN", "DRAGOMAN_DATABASE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))

    def leave_logging_alone(level: str, json: bool, redactor: Redactor) -> None: ...

    monkeypatch.setattr("dragoman.cli.in_process.configure_logging", leave_logging_alone)
    return tmp_path / "home"


def call(home: Path, arguments: dict[str, Any] = SUM) -> Any:
    async def once() -> Any:
        async with open_asking(home, f"sqlite:///{home}/dragoman.db", wait=0.01) as hub:
            return await hub.acting_for(AGENT).call(WRITES, arguments)

    return asyncio.run(once())


@pytest.mark.slow
def test_a_question_is_seen_answered_and_taken_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def dragoman(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    assert call(home).error.code == "approval_pending"
    code, out, err = dragoman("approvals", "list")
    assert (code, WRITES in out, "agent mailer" in out) == (0, True, True), err
    [asked] = json.loads(dragoman("approvals", "list", "--json")[1])["approvals"]
    code, out, _ = dragoman("approvals", "show", asked["id"])
    assert code == 0
    assert '"a": 1' in out
    assert dragoman("approvals", "answer", asked["id"], "thread")[0] == 1
    assert "answered with once" in dragoman("approvals", "answer", asked["id"], "once")[2]
    assert call(home).ok
    assert call(home).error.code == "approval_pending"
    [asked] = json.loads(dragoman("approvals", "list", "--json")[1])["approvals"]
    assert (
        json.loads(dragoman("approvals", "answer", asked["id"], "always", "--json")[1])["answer"] == "always"
    )
    assert call(home, {"a": 7, "b": 7}).ok
    assert WRITES in dragoman("approvals", "allowed")[1]
    assert dragoman("approvals", "withdraw", asked["id"])[0] == 0
    assert "nothing is allowed" in dragoman("approvals", "allowed")[2]
    code, _, err = dragoman("approvals", "withdraw", asked["id"])
    assert (code, "hint: dragoman approvals allowed" in err) == (1, True)
    words = ["--callers", "direct,agent", "--approval", "never", "--require", "finance", "--cost", "0.5"]
    code, out, err = dragoman("tools", "set", WRITES, *words)
    assert (code, "approval never; requires finance; costs $0.5 a call" in out) == (0, True), err
    assert call(home, {"a": 8, "b": 8}).ok
    shown = json.loads(
        dragoman("tools", "set", WRITES, "--approval", "inherit", "--require", "", "--json")[1]
    )
    assert (shown["approval"], shown["required_capabilities"]) == (None, [])
    assert dragoman("tools", "set", WRITES)[0] == 1
