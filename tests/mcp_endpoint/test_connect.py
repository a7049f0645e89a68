"""`dragoman connect`: what it prints works, and what it writes loses nothing."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dragoman.cli import connect as command
from dragoman.cli.mcp_clients import clients

app = typer.Typer()
app.command()(command.connect)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("DRAGOMAN_URL", "DRAGOMAN_TOKEN", "DRAGOMAN_DATABASE_URL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "dragoman"))
    return tmp_path


def run(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


@pytest.mark.parametrize("name", ["claude", "claude-desktop", "cursor", "vscode"])
def test_what_is_printed_starts_this_home_and_holds_no_secret(home: Path, name: str) -> None:
    done = run(name, "--view", "search")
    assert done.exit_code == 0, done.output
    client = clients(home)[name]
    entry = json.loads(done.stdout)[client.table]["dragoman"]
    assert entry["args"][-3:] == ["stdio", "--view", "search"]
    assert Path(entry["command"]).is_absolute()
    assert entry["env"] == {"DRAGOMAN_HOME": str(home / "dragoman")}
    assert not client.file.exists()


@pytest.mark.parametrize("name", ["claude", "claude-desktop", "cursor", "vscode"])
def test_writing_keeps_everything_else_and_the_old_file(home: Path, name: str) -> None:
    client = clients(home)[name]
    client.file.parent.mkdir(parents=True, exist_ok=True)
    before = json.dumps({"theme": "dark", client.table: {"other": {"command": "x"}}}, indent=4)
    client.file.write_text(before)
    client.file.chmod(0o640)
    done = run(name, "--write")
    assert done.exit_code == 0, done.output
    after = json.loads(client.file.read_text())
    assert after["theme"] == "dark"
    assert after[client.table]["other"] == {"command": "x"}
    assert "stdio" in after[client.table]["dragoman"]["args"]
    assert client.file.read_text().startswith('{\n    "theme"')
    assert stat.S_IMODE(client.file.stat().st_mode) == 0o640
    assert client.file.with_name(f"{client.file.name}.before-dragoman").read_text() == before
    assert "+" in done.stdout
    again = run(name, "--write")
    assert json.loads(client.file.read_text()) == after, again.output


def test_codex_gets_a_table_of_its_own(home: Path) -> None:
    file = clients(home)["codex"].file
    file.parent.mkdir()
    file.write_text('# mine\nmodel = "x"')
    assert run("codex", "--write").exit_code == 0
    assert file.read_text().startswith('# mine\nmodel = "x"\n')
    entry = tomllib.loads(file.read_text())["mcp_servers"]["dragoman"]
    assert entry["args"][-1] == "stdio"
    assert (entry["startup_timeout_sec"], entry["tool_timeout_sec"]) == (30, 300)
    after = file.read_text()
    assert run("codex", "--write").exit_code == 0
    assert file.read_text() == after
    assert run("codex", "--write", "--view", "search").exit_code == 0
    assert tomllib.loads(file.read_text())["mcp_servers"]["dragoman"]["args"][-1] == "search"
    assert file.read_text().count("mcp_servers") == 1
    file.write_text('mcp_servers = { dragoman = { command = "x" } }')
    refused = run("codex", "--write")
    assert (refused.exit_code, "by hand" in refused.output) == (1, True)


@pytest.mark.parametrize("text", ["{broken", "[]", '{"mcpServers": []}', '{\n // mine\n "a": 1}'])
def test_a_file_that_is_not_understood_stays_as_it_is(home: Path, text: str) -> None:
    file = clients(home)["cursor"].file
    file.parent.mkdir()
    file.write_text(text)
    done = run("cursor", "--write")
    assert done.exit_code == 1
    assert "hint:" in done.output
    assert file.read_text() == text


def test_a_secret_is_written_but_printed_only_when_asked_for(home: Path) -> None:
    assert run("cursor", "--http").exit_code == 1
    done = run("cursor", "--http", "--write")
    assert done.exit_code == 0, done.output
    entry = json.loads(clients(home)["cursor"].file.read_text())["mcpServers"]["dragoman"]
    secret = entry["headers"]["Authorization"].removeprefix("Bearer ")
    assert len(secret) > 20
    assert secret not in done.output
    assert entry["url"] == "http://127.0.0.1:8765/mcp"
    assert "dragoman serve" in done.output
    shown = run("vscode", "--http", "--show", "--connector", "github")
    assert shown.exit_code == 0, shown.output
    entry = json.loads(shown.stdout)["servers"]["dragoman"]
    assert entry["url"].endswith("/mcp/github")
    assert entry["headers"]["Authorization"].startswith("Bearer ")
    assert run("claude-desktop", "--http", "--show").exit_code == 1
