"""`import`, `export`, `discover` and `connectors add --from-registry`, as a person types them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from command_line import Command

from discovery.registry_server import RegistryServer, open_registry
from servers.processes import stdio

SECRET = "s3cret-of-the-command"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_registry()) as peer:
        monkeypatch.setenv("DRAGOMAN_REGISTRY_URL", peer.url)
        yield peer


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".env").write_text(f"FROM_FILE={SECRET}\n")
    entry = {**stdio("--label", "${workspaceFolder}"), "envFile": "${workspaceFolder}/.env"}
    document = {
        "inputs": [{"id": "key", "type": "promptString", "description": "The key", "password": True}],
        "servers": {"my_tools": entry, "asking": {**stdio(), "env": {"KEY": "${input:key}"}}},
    }
    (folder / ".vscode/mcp.json").write_text("// mine\n" + json.dumps(document))
    return folder


def test_a_dry_run_shows_what_would_happen(project: Path, dragoman: Command) -> None:
    outcome = dragoman("import", str(project / ".vscode/mcp.json"), "--dry-run")
    assert outcome.code == 1
    assert "+ add my-tools" in outcome.out
    assert "? needs input asking it asks for key" in outcome.out
    assert "dry run" in outcome.err
    assert dragoman("connectors", "list", "--json").value["connectors"][0]["slug"] == "native"


def test_a_file_is_imported_with_its_variables_and_inputs(project: Path, dragoman: Command) -> None:
    file = str(project / ".vscode/mcp.json")
    outcome = dragoman("import", file, "--input", f"key={SECRET}")
    assert outcome.code == 0, outcome
    assert SECRET not in outcome.out + outcome.err
    assert dragoman("call", "my_tools__echo", "text=hello").out.strip() == "hello"
    shown = dragoman("connectors", "show", "my-tools", "--json").value
    assert shown["secrets"] == ["env:FROM_FILE"]
    assert shown["configuration"]["args"][-1] == str(project)
    again = dragoman("import", file, "--input", f"key={SECRET}", "--json")
    assert [step["action"] for step in again.value["steps"]] == ["unchanged", "unchanged"]


def test_a_file_that_is_not_there_loses_no_other(project: Path, tmp_path: Path, dragoman: Command) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"mcpServers": {"a": stdio()}}))
    outcome = dragoman("import", str(tmp_path / "none.json"), str(tmp_path / "a.json"), "--no-connect")
    assert outcome.code == 1
    assert "none.json cannot be read: No such file" in outcome.out.replace("\n", " ")
    assert "+ add a" in outcome.out


def test_what_was_exported_is_imported_again(tmp_path: Path, dragoman: Command) -> None:
    server = stdio()
    words = ["connectors", "add", "mine", "--no-connect", "--secret-env", f"KEY={SECRET}"]
    assert dragoman(*words, "--", server["command"], *server["args"]).code == 0
    bare = dragoman("export")
    assert SECRET not in bare.out
    assert bare.value["connectors"]["mine"]["secrets"] == {"env:KEY": None}
    file = tmp_path / "export.json"
    file.write_text("it was there, and much longer than what is written to it now" * 100)
    file.chmod(0o644)
    assert dragoman("export", "--include-secrets", "-o", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert dragoman("connectors", "remove", "mine", "--yes").code == 0
    assert dragoman("import", str(file), "--no-connect").code == 0
    assert dragoman("connectors", "show", "mine", "--json").value["secrets"] == ["env:KEY"]
    assert dragoman("export", "--format", "yaml").code == 1


def test_discover_shows_the_exact_command(registry: RegistryServer, dragoman: Command) -> None:
    outcome = dragoman("discover", "web-search")
    assert outcome.code == 0
    assert "1 npx -y @example/server-search@1.0.2" in outcome.out
    assert "asks for SEARCH_API_KEY" in outcome.out
    assert "npm, PyPI" in dragoman("discover", "bundle").out
    assert "nothing for 'zzz'" in dragoman("discover", "zzz").err
    assert "--cursor 2" in dragoman("discover", "--limit", "2").err


def test_nothing_is_added_before_somebody_says_yes(registry: RegistryServer, dragoman: Command) -> None:
    words = ["connectors", "add", "--from-registry", "com.example/tickets", "--input", f"token={SECRET}"]
    outcome = dragoman(*words)
    assert outcome.code == 1
    assert "https://tickets.example/mcp" in outcome.err
    assert "--yes" in outcome.err
    added = dragoman(*words, "--yes", "--no-connect")
    assert added.code == 0, added
    assert "it connects to https://tickets.example/mcp" in added.out
    assert SECRET not in added.out + added.err
    other = dragoman(
        "connectors", "add", "mine", *words[2:4], "--way", "2", "--yes", "--no-connect", "--json"
    )
    assert (other.value["slug"], other.value["transport"]) == ("mine", "sse")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from-registry", "io.example/bundle", "--yes"], "no way that Dragoman can go"),
        (["--from-registry", "io.example/web-search", "--yes"], "SEARCH_API_KEY is needed"),
        (["--from-registry", "io.example/nobody", "--yes"], "the registry has no server"),
        (
            ["x", "--from-registry", "io.example/time", "--url", "https://a.example"],
            "the registry says the url",
        ),
        (["--input", "canary"], "NAME"),
        ([], "give the connector a name"),
    ],
)
def test_what_cannot_be_added_says_why(
    words: list[str], told: str, registry: RegistryServer, dragoman: Command
) -> None:
    outcome = dragoman("connectors", "add", *words)
    assert outcome.code in (1, 2)
    assert told in outcome.err
    assert "canary" not in outcome.err


def test_that_a_server_may_ask_for_nothing_is_said_and_kept(tmp_path: Path, dragoman: Command) -> None:
    server = stdio()
    words = ["connectors", "add", "quiet", "--no-connect", "--client-capability", "none"]
    assert dragoman(*words, "--", server["command"], *server["args"]).code == 0

    def may_ask() -> Any:
        return dragoman("export").value["connectors"]["quiet"]["client_capabilities"]

    assert may_ask() == []
    (tmp_path / "dragoman.toml").write_text(
        f"[connectors.quiet]\ncommand = '{server['command']}'\nargs = {json.dumps(server['args'])}\n"
        "client_capabilities = []\n"
    )
    assert dragoman("connectors", "update", "quiet", "--unset", "client_capabilities").code == 0
    assert "client_capabilities" not in dragoman("export").value["connectors"]["quiet"]
    assert dragoman("import", str(tmp_path / "dragoman.toml"), "--replace", "--no-connect").code == 0
    assert may_ask() == []
