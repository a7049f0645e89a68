"""Boxes of programs by command: what one lacks is offered to who sits there, and what holds is shown."""

import json
import sys
from pathlib import Path

import pytest
from command_line import Command
from terminal import at_terminal

from boxes.boxed import BY_ITSELF, PROGRAM, needs
from dragoman.connections.boxes import machine

HOSTILE = ("--approval", "never", "--", sys.executable, "-S", "-E", str(PROGRAM))


def test_a_path_that_a_command_names_is_offered_where_somebody_sits_and_told_where_nobody_does(
    dragoman: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bubblewrap")
    monkeypatch.setenv("DRAGOMAN_BOX_PROGRAMS", BY_ITSELF)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("before")
    named = [str(tmp_path / "one"), f"--data={tmp_path / 'two'}"]
    with at_terminal("connectors", "add", "files", *HOSTILE, *named, columns=300) as adding:
        adding.until(f"files needs {tmp_path / 'one'}: mount it?")
        adding.type("\n")
        adding.until(f"files needs {tmp_path / 'two'}: mount it?")
        adding.type("write\n")
        assert adding.wait() == 0
    shown = dragoman("connectors", "show", "files", "--json").value
    assert shown["box"]["mode"] == "bubblewrap"
    assert shown["box"]["mounts"] == [f"{tmp_path / 'one'}:ro", f"{tmp_path / 'two'}:rw"]
    files = {str(tmp_path / name / "file"): "after" for name in ("one", "two")}
    assert dragoman("call", "mcp_files_look", f"facts={json.dumps({'write': files})}").code == 0
    assert [Path(file).read_text() for file in files] == ["before", "after"]

    outcome = dragoman("connectors", "add", "told", *HOSTILE, str(tmp_path / "one"))
    assert outcome.code == 0
    assert f"dragoman connectors update told --mount {tmp_path / 'one'}" in outcome.err
    assert dragoman("connectors", "show", "told", "--json").value["box"]["mounts"] == []


def test_doctor_says_what_this_machine_can_box_with_and_what_is_missing(
    dragoman: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boxes() -> dict[str, str]:
        findings = dragoman("doctor", "--json").value["findings"]
        return next(one for one in findings if one["subject"] == "boxes")

    mode = machine.chosen("auto")
    if mode != "none":
        assert (boxes()["verdict"], boxes()["text"]) == ("ok", f"programs run in {mode}")
    for way in ("bubblewrap", "landlock", "container"):
        missing = machine.BoxWay(way, "not here")  # type: ignore[arg-type]
        monkeypatch.setattr(machine, way, lambda missing=missing: missing)
    found = boxes()
    assert found["verdict"] == "note"
    assert "apt-get install bubblewrap" in found["hint"]
    monkeypatch.setenv("DRAGOMAN_MULTI_USER", "1")
    assert boxes()["verdict"] == "wrong"
