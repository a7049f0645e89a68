"""What the README shows works as written."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import Command
from dragoman import Settings
from patience import patient, wait_until
from snippets import snippets

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SHELL = [one.text for one in snippets(ROOT / "README.md", "sh")]
COMMAND = Path(sys.executable).with_name("dragoman")


def run(line: str, home: Path) -> str:
    words = shlex.split(line)
    words[0] = str(COMMAND)
    done = subprocess.run(
        words,
        env={**os.environ, "DRAGOMAN_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=patient(100),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.real
def test_the_first_commands_work_as_written(tmp_path: Path) -> None:
    lines = [line for line in SHELL[1].splitlines() if line.startswith("dragoman") and "npx" not in line]
    outputs = [run(line, tmp_path) for line in lines]
    assert len(lines) == 3
    assert "mcp_time_get_current_time" in outputs[1]
    assert "Europe/Rome" in outputs[2]


@pytest.mark.real
def test_the_python_example_works_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    (code,) = [one.text for one in snippets(ROOT / "README.md", "python")]
    names: dict[str, Any] = {}
    exec(f"async def example():\n{textwrap.indent(code, '    ')}", names)
    asyncio.run(names["example"]())
    printed = capsys.readouterr().out
    assert "Europe/Rome" in printed
    assert "180.0" in printed


@pytest.mark.slow
def test_the_team_section_works_as_written(
    tmp_path: Path, dragoman: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line as it stands, then a day in the life of the two users."""

    def done(words: Sequence[str], variables: dict[str, str]) -> str:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        outcome = dragoman(*words)
        assert outcome.code == 0, outcome.err
        return outcome.out

    section = README.split("## For a team")[1].split("## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    variables: dict[str, str] = {"DRAGOMAN_HOME": str(tmp_path), "DRAGOMAN_PORT": "0"}
    commands: list[str] = []
    for line in block.splitlines():
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            variables[name] = value
        else:
            commands.append(line)
    assert len(section.splitlines()) <= 20
    outputs = [done(shlex.split(line)[1:], variables) for line in commands[:-1]]
    anns_key = outputs[2].strip()
    assert commands[-1] == "dragoman serve"
    with subprocess.Popen(
        [COMMAND, "serve"], env={**os.environ, **variables}, stderr=subprocess.DEVNULL
    ) as server:
        try:
            wait_until(lambda: (tmp_path / "server.json").exists() or server.poll() is not None, within=60)
            assert server.poll() is None
            url = json.loads((tmp_path / "server.json").read_text())["url"]
            anns = {"DRAGOMAN_HOME": str(tmp_path / "ann"), "DRAGOMAN_URL": url, "DRAGOMAN_TOKEN": anns_key}
            assert "ann" in done(["whoami"], anns)
            assert "bob" in done(["users", "list"], anns)
            for words in ("approvals list", "usage show", "audit verify"):
                done(words.split(), anns)
        finally:
            server.terminate()


OUR_LINES = [line for block in SHELL for line in block.splitlines() if line.startswith("dragoman")]


@pytest.mark.parametrize("line", OUR_LINES)
def test_every_command_shown_exists(line: str, dragoman: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that was renamed must not stay in the README."""
    words = [word for word in shlex.split(line.split("#")[0])[1:] if re.fullmatch(r"[a-z]+", word)][:2]
    groups = ("agents", "connectors", "tools", "workspaces", "users", "keys")
    path = words if words[0] in groups else words[:1]
    monkeypatch.setenv("COLUMNS", "200")
    shown = dragoman(*path, "--help")
    assert shown.code == 0, shown.err
    for option in re.findall(r"(?<= )--[a-z][a-z-]+", line):
        assert option in shown.out


def test_every_setting_in_the_table_exists() -> None:
    named = set(re.findall(r"`DRAGOMAN_([A-Z_]+)`", README))
    assert named
    assert named <= {item.name.upper() for item in fields(Settings)}


def test_it_is_short_enough_to_be_read() -> None:
    assert len(README.splitlines()) <= 150
