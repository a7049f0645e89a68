"""`dragoman init`: what clients have is shown, taken over and given back, never without a yes."""

import json
import tomllib
from pathlib import Path

import pytest
from command_line import Command
from terminal import at_terminal

from dragoman.cli.mcp_clients import clients
from servers.processes import stdio

SECRET = "s3cret-of-the-client"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of somebody with four clients and five servers, of which one cannot be reached."""
    folder = tmp_path / "person"
    (folder / "work" / ".vscode").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(folder / "work")
    server, known = stdio(), clients(folder)
    for name in ("claude-desktop", "cursor", "codex"):
        known[name].file.parent.mkdir(parents=True)
    claude = {
        "oauthAccount": SECRET,
        "mcpServers": {"notes": server},
        "projects": {"/a/project": {"history": [SECRET], "mcpServers": {"tickets": server}}},
    }
    known["claude"].file.write_text(json.dumps(claude))
    far = {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}}
    known["cursor"].file.write_text(json.dumps({"mcpServers": {"notes": server, "far": far}}))
    words = f"command = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n"
    text = f'model = "x" # mine\n\n[mcp_servers.docs]\n{words}\n# also mine\n[profiles.quick]\nmodel = "y"\n'
    known["codex"].file.write_text(text)
    (folder / "work/.vscode/mcp.json").write_text(json.dumps({"servers": {"shared": server}}))
    return folder


def everything_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def slugs(dragoman: Command) -> list[str]:
    return [one["slug"] for one in dragoman("connectors", "list", "--json").value["connectors"]]


def test_without_a_yes_everything_is_shown_and_nothing_written(person: Path, dragoman: Command) -> None:
    before = everything_below(person)
    shown = dragoman("init")
    assert shown.code == 0
    for fact in (
        "Claude Code ",
        "notes, tickets",
        "Claude Desktop",
        "no servers",
        "+ add docs",
        "+ add shared",
    ):
        assert fact in shown.out
    assert "nothing was changed" in shown.err
    assert SECRET not in shown.out + shown.err
    with at_terminal("init") as asking:
        asking.until("Take them over into Dragoman?")
        asking.type("n\n")
        asking.until("Let Claude Code use Dragoman?")
        asking.type("n\n")
        for title in ("Claude Desktop", "Cursor", "Codex"):
            asking.until(f"Let {title} use Dragoman?")
            asking.type("\n")
        assert asking.wait() == 0
    assert everything_below(person) == before
    assert slugs(dragoman) == ["native"]


def test_with_a_yes_servers_move_to_dragoman_and_their_clients_use_it(
    person: Path, dragoman: Command
) -> None:
    before, known = everything_below(person), clients(person)
    done = dragoman("init", "--yes")
    assert done.code == 0, done.err
    assert SECRET not in done.out + done.err
    assert slugs(dragoman) == ["docs", "far", "native", "notes", "shared", "tickets"]
    assert dragoman("call", "notes__echo", "text=hello").out == "hello\n"

    claude = json.loads(known["claude"].file.read_text())
    assert [*claude["mcpServers"]] == ["dragoman"]
    assert [*claude["projects"]["/a/project"]["mcpServers"]] == ["tickets"]
    # What does not work in Dragoman stays where it may work.
    assert [*json.loads(known["cursor"].file.read_text())["mcpServers"]] == ["far", "dragoman"]
    assert [*json.loads(known["claude-desktop"].file.read_text())["mcpServers"]] == ["dragoman"]
    codex = known["codex"].file.read_text()
    assert [*tomllib.loads(codex)["mcp_servers"]] == ["dragoman"]
    assert "# mine" in codex
    assert "# also mine\n[profiles.quick]" in codex
    after = everything_below(person)
    for name in ("claude", "cursor", "codex"):
        file = str(known[name].file)
        assert after[f"{file}.before-dragoman"] == before[file]
    project = str(person / "work/.vscode/mcp.json")
    assert after[project] == before[project]

    again = dragoman("init", "--yes", "--json").value
    assert (again["imported"], again["written"]) == (False, [])
    assert {step["action"] for step in again["steps"]} == {"unchanged"}
    assert everything_below(person) == after


def test_a_file_that_only_its_editor_understands_is_left_alone(person: Path, dragoman: Command) -> None:
    known = clients(person)
    known["cursor"].file.write_text('{\n  // by hand\n  "mcpServers": {}\n}')
    known["codex"].file.write_text("broken = ")
    before = everything_below(person)
    done = dragoman("init", "--yes", "--json").value
    written = {one["client"] for one in done["written"]}
    assert written == {"claude", "claude-desktop"}
    problems = {one["title"]: one["problem"] for one in done["found"]}
    assert "TOML" in problems["Codex"]
    after = everything_below(person)
    for name in ("cursor", "codex"):
        assert after[str(known[name].file)] == before[str(known[name].file)]


def test_every_file_that_is_changed_keeps_its_copy(person: Path, dragoman: Command) -> None:
    file = clients(person)["cursor"].file
    first = file.read_bytes()
    assert dragoman("init", "--yes").code == 0
    second = {"mcpServers": {**json.loads(file.read_text())["mcpServers"], "more": stdio()}}
    file.write_text(json.dumps(second))
    assert dragoman("init", "--yes").code == 0
    assert file.with_name(f"{file.name}.before-dragoman").read_bytes() == first
    assert json.loads(file.with_name(f"{file.name}.before-dragoman-2").read_text()) == second
    assert [*json.loads(file.read_text())["mcpServers"]] == ["far", "dragoman"]


def test_a_machine_without_clients_is_told_how_to_begin(
    tmp_path: Path, dragoman: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    told = dragoman("init")
    assert (told.code, "no Claude, Cursor, VS Code or Codex was found" in told.err) == (0, True)
    assert "there is no server yet: dragoman connectors add" in told.err
    assert "--yes" not in told.err  # there is nothing to say yes to
