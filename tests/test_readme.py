"""What the README promises. Its snippets are run, twice, by docs/test_snippets.py."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from cli.command_line import Command
from dragoman import Settings
from patience import wait_until

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMAND = Path(sys.executable).with_name("dragoman")


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


def test_every_setting_that_is_named_exists() -> None:
    named = set(re.findall(r"\bDRAGOMAN_([A-Z_]+)", README))
    assert named
    assert named <= {item.name.upper() for item in fields(Settings)}


def test_it_is_short_enough_to_be_read() -> None:
    assert len(README.splitlines()) <= 150


def test_the_picture_moves_and_is_small() -> None:
    """As `scripts/picture.py` makes it: an animated WebP, and no page that is long in coming."""
    (place,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    picture = (ROOT / place).read_bytes()
    assert picture[8:16] == b"WEBPVP8X"
    assert picture.count(b"ANMF") > 10
    assert len(picture) <= 1_500_000
