"""`mcpServers` and `servers`, as the clients write them."""

import json
from typing import Any

import pytest

from dragoman.errors import InvalidConfig
from dragoman.formats import BaseFolders, FoundConnector, filled, read
from dragoman.hub.connector_input import configured

CLAUDE_DESKTOP = """{
  "mcpServers": {
    "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"]},
    "email_mcp": {"command": "python", "args": ["mail.py"], "env": {"MAIL_TOKEN": "s3cret", "MAIL_PORT": 993}}
  },
  "globalShortcut": "Ctrl+Space"
}"""
CURSOR = """{
  "mcpServers": {
    "notes": {"url": "https://notes.example/mcp", "headers": {"Authorization": "Bearer ${env:NOTES_TOKEN}"}},
    "local": {"type": "stdio", "command": "${workspaceFolder}/run.sh", "args": ["${userHome}/db"],
      "envFile": ".env"}
  }
}"""
WINDSURF = """{"mcpServers": {
  "search": {"serverUrl": "https://search.example/mcp", "headers": {"X-Key": "${SEARCH_KEY}"},
    "disabled": true},
  "old": {"serverUrl": "https://old.example/sse", "disabledTools": ["a"], "alwaysAllow": ["b"]}
}}"""
VS_CODE = """{
  // asked for once
  "inputs": [
    {"type": "promptString", "id": "github_token", "description": "GitHub token", "password": true},
    {"type": "promptString", "id": "region", "description": "Region", "default": "eu"},
    {"type": "pickString", "id": "mode", "options": ["fast", {"label": "S", "value": "slow"}]}
  ],
  "servers": {
    "github": {"type": "http", "url": "https://api.example/mcp/",
      "headers": {"X-Auth": "Bearer ${input:github_token}"}},
    /* a local one, "with quotes" */
    "weather": {"type": "stdio", "command": "uvx", "args": ["weather", "--region", "${input:region}",],
      "env": {"NOTE": "http://not-a-comment.example // really"}},
  },
}"""


def one(entry: dict[str, Any], **places: str) -> FoundConnector:
    plan = read(json.dumps({"mcpServers": {"one": entry}}), "x.json", BaseFolders(**places))
    assert not plan.problems, plan.problems
    return plan.connectors[0]


def reason(entry: Any) -> str:
    plan = read(json.dumps({"mcpServers": {"bad": entry, "good": {"command": "uvx"}}}))
    assert [found.name for found in plan.connectors] == ["good"]
    assert plan.problems[0].entry == "bad"
    return plan.problems[0].reason


def test_claude_desktop_is_read_and_a_name_with_underscores_stays_an_alias() -> None:
    files, mail = read(CLAUDE_DESKTOP, "claude_desktop_config.json").connectors
    assert (files.slug, files.aliases) == ("filesystem", ())
    assert files.facts["args"][2] == "/data"
    assert (mail.name, mail.slug, mail.aliases) == ("email_mcp", "email-mcp", ("email_mcp",))
    assert mail.facts["env"] == {"MAIL_TOKEN": "s3cret", "MAIL_PORT": "993"}
    assert "s3cret" not in repr(mail)


def test_cursor_variables_become_variables_of_the_environment() -> None:
    notes, local = read(CURSOR, "mcp.json", BaseFolders(folder="/project", home="/home/me")).connectors
    assert notes.facts["headers"] == {"Authorization": "Bearer ${NOTES_TOKEN}"}
    assert local.facts["command"] == "/project/run.sh"
    assert local.facts["args"] == ("/home/me/db",)
    assert local.env_file == ".env"


def test_windsurf_calls_its_url_otherwise() -> None:
    search, old = read(WINDSURF, "mcp_config.json").connectors
    assert (search.facts["url"], search.enabled) == ("https://search.example/mcp", False)
    assert search.facts["headers"] == {"X-Key": "${SEARCH_KEY}"}
    assert old.enabled
    assert "alwaysAllow" in old.warnings[0]
    assert "disabledTools" in old.warnings[0]


def test_vs_code_is_read_with_its_comments_and_says_what_it_asks_for() -> None:
    plan = read(VS_CODE, "mcp.json")
    github, weather = plan.connectors
    assert plan.format == "vscode"
    assert [(need.name, need.is_secret, need.default) for need in github.needs] == [
        ("github_token", True, None)
    ]
    assert weather.facts["env"]["NOTE"] == "http://not-a-comment.example // really"
    assert [need.default for need in weather.needs] == ["eu"]


def test_answers_are_put_in_their_places_and_secret_ones_are_marked() -> None:
    github, weather = read(VS_CODE).connectors
    facts, missing = filled(github, {})
    assert [need.name for need in missing] == ["github_token"]
    facts, missing = filled(github, {"github_token": "t0ken"})
    assert facts["headers"] == {"X-Auth": "Bearer t0ken"}
    assert facts["secret"] == ("header:X-Auth",)
    assert not missing
    assert filled(weather, {})[0]["args"] == ("weather", "--region", "eu")


def test_settings_of_vs_code_keep_the_same_under_mcp() -> None:
    plan = read('{"editor.fontSize": 12, "mcp": {"servers": {"time": {"command": "uvx", "args": ["t"]}}}}')
    assert [found.slug for found in plan.connectors] == ["time"]


def test_claude_code_keeps_servers_for_each_project() -> None:
    shared = {"command": "uvx", "args": ["shared"]}
    document = {
        "numStartups": 3,
        "mcpServers": {"shared": shared, "db": {"command": "uvx", "args": ["db"]}},
        "projects": {
            "/code/shop": {"mcpServers": {"db": {"command": "uvx", "args": ["db", "${workspaceFolder}"]}}},
            "/code/blog": {"mcpServers": {"shared": shared}, "allowedTools": []},
        },
    }
    plan = read(json.dumps(document), ".claude.json")
    by_slug = {found.slug: found for found in plan.connectors}
    assert list(by_slug) == ["shared", "db", "db-shop"]
    assert by_slug["db-shop"].facts["args"] == ("db", "/code/shop")
    assert "another project" in by_slug["db-shop"].warnings[-1]


@pytest.mark.parametrize(
    ("written", "transport"),
    [("sse", "sse"), ("http", "http"), ("streamable-http", "http"), ("streamableHttp", "http")],
)
def test_every_spelling_of_a_transport_is_known(written: str, transport: str) -> None:
    assert one({"type": written, "url": "https://a.example/x"}).facts["transport"] == transport
    assert one({"transport": written, "url": "https://a.example/x"}).facts["transport"] == transport


def test_a_transport_may_be_a_table() -> None:
    inner = {"type": "sse", "url": "https://a.example/x", "headers": {"X-A": "1"}}
    assert one({"transport": inner}).facts == {
        "transport": "sse",
        "url": inner["url"],
        "headers": {"X-A": "1"},
    }


@pytest.mark.parametrize(("written", "seconds"), [(30, 30.0), (60000, 60.0), (2.5, 2.5)])
def test_a_timeout_is_read_in_seconds_or_milliseconds_and_says_so(written: float, seconds: float) -> None:
    found = one({"command": "uvx", "timeout": written})
    assert found.facts["request_timeout"] == seconds
    assert "was read as" in found.warnings[0]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("uvx time", "a table with a command or a url"),
        ({}, "neither a command nor a url"),
        ({"command": "a", "url": "https://b.example"}, "only one of them"),
        ({"command": "a", "args": "b c"}, "args must be a list"),
        ({"command": "a", "args": [["b"]]}, "args must be a list of words"),
        ({"command": ["a"]}, "command must be text"),
        ({"command": "a", "env": ["X=1"]}, "env must be a table"),
        ({"command": "a", "env": {"X": {}}}, "plain values"),
        ({"type": "ws", "url": "https://b.example"}, "'ws'"),
        ({"type": "stdio", "url": "https://b.example"}, "which needs a command"),
        ({"type": "sse", "command": "a"}, "which needs a url"),
        ({"command": "a", "disabled": "no"}, "disabled must be true or false"),
        ({"command": "a", "timeout": -1}, "timeout"),
        ({"command": "a", "args": ["${command:pick}"]}, "only the editor knows"),
        ({"command": "a", "args": ["${file:/etc/passwd}"]}, "only the editor knows"),
    ],
)
def test_one_bad_entry_is_named_and_loses_no_other(entry: Any, told: str) -> None:
    assert told in reason(entry)


def test_an_unknown_workspace_folder_is_asked_for() -> None:
    found = one({"command": "uvx", "args": ["${workspaceFolder}/a"]})
    assert [need.name for need in found.needs] == ["workspaceFolder"]
    assert filled(found, {"workspaceFolder": "/p"})[0]["args"] == ("/p/a",)


def test_a_variable_in_a_command_is_needed_at_import_because_nothing_expands_it_later() -> None:
    found = one({"command": "${TOOLS}/run", "args": ["${TOOLS}"]})
    assert [need.name for need in found.needs] == ["env:TOOLS"]
    facts = filled(found, {"env:TOOLS": "/opt"})[0]
    assert (facts["command"], facts["args"]) == ("/opt/run", ("${TOOLS}",))


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "a", "args": ["--api-key=abcdef"]},
        {"command": "a", "args": ["--token", "abcdef"]},
        {"command": "a", "args": ["ghp_abcdefghijklmnopqrstuvwxyz0123456789"]},
        {"command": "a", "args": ["postgres://me:abcdef@db/x"]},
        {"url": "https://a.example/mcp?api_key=abcdef"},
    ],
)
def test_a_token_in_the_open_is_kept_as_a_secret_and_not_repeated(
    entry: dict[str, Any],
) -> None:
    kept = configured(one(entry).facts, {})
    told = " ".join(kept.told)
    assert "is kept as a secret" in told
    assert "abcdef" not in told + repr(kept)
    (value,) = kept.secrets.values()
    assert "abcdef" in value.get_secret_value()


@pytest.mark.parametrize(
    "args", [["--token", "${TOKEN}"], ["--token-file=${F}"], ["--port", "80"], ["--api-key"]]
)
def test_a_reference_is_no_token(args: list[str]) -> None:
    found = one({"command": "a", "args": args})
    assert (found.warnings, configured(found.facts, {}).secrets) == ((), {})


def test_servers_without_a_wrapper_are_understood() -> None:
    assert read('{"time": {"command": "uvx", "args": ["mcp-server-time"]}}').connectors[0].slug == "time"


def test_one_server_without_a_name_is_told_how_to_get_one() -> None:
    with pytest.raises(InvalidConfig, match="without a name") as caught:
        read('{"command": "uvx", "args": []}')
    assert "mcpServers" in str(caught.value.hint)


def test_codex_tables_in_toml_are_understood() -> None:
    plan = read('model = "x"\n[mcp_servers.docs]\ncommand = "npx"\nargs = ["-y", "docs"]\n', "config.toml")
    assert plan.connectors[0].facts == {"command": "npx", "args": ("-y", "docs")}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("<!doctype html><html>", "HTML"),
        ('{"mcpServers": {', "not valid JSON"),
        ('{\n "a": 1,\n "b": }', "line 3"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "a list without entries"),
        ('["a"]', "a list without entries"),
        ('"mcpServers"', "holds no table"),
        ("hello world", "neither JSON nor valid TOML"),
        (
            '{"scripts": {"dev": "vite"}, "version": "1.0"}',
            "nothing that Dragoman can import; it has scripts, version",
        ),
        ("{}", "nothing that Dragoman can import"),
        ("x" * (9 * 1024 * 1024), "larger than 8 MB"),
    ],
)
def test_what_cannot_be_imported_says_what_was_found(text: str, told: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        read(text, "file.json" if text.startswith("[[") else "file")
    assert told in caught.value.message


def test_what_fits_nothing_names_what_was_expected() -> None:
    with pytest.raises(InvalidConfig) as caught:
        read('{"a": 1}')
    assert "mcpServers" in str(caught.value.hint)
    assert "action_servers" in str(caught.value.hint)


def test_codex_words_mean_what_they_mean_elsewhere() -> None:
    text = """
    [mcp_servers.figma]
    url = "https://mcp.figma.example/mcp"
    bearer_token_env_var = "FIGMA_TOKEN"
    http_headers = { X-Region = "north" }
    env_http_headers = { X-Team = "TEAM" }
    startup_timeout_sec = 20
    tool_timeout_sec = 45
    enabled = false
    [mcp_servers.local]
    command = "docs"
    env_vars = ["HOME"]
    env = { MODE = "fast" }
    """
    figma, local = read(text, "config.toml").connectors
    assert figma.facts == {
        "url": "https://mcp.figma.example/mcp",
        "headers": {"X-Region": "north", "X-Team": "${TEAM}", "Authorization": "Bearer ${FIGMA_TOKEN}"},
        "connect_timeout": 20,
        "request_timeout": 45.0,
    }
    assert not figma.enabled
    assert local.facts == {"command": "docs", "env": {"HOME": "${HOME}", "MODE": "fast"}}
    assert not any("not taken over" in warning for warning in (*figma.warnings, *local.warnings))


def test_dragoman_is_no_server_of_itself() -> None:
    servers = {
        "dragoman": {"command": "/opt/bin/dragoman", "args": ["stdio"]},
        "mine": {"command": "python", "args": ["-m", "dragoman", "stdio", "--view", "search"]},
        "Dragoman": {"url": "http://127.0.0.1:8765/mcp"},
        "other": {"url": "http://127.0.0.1:8765/mcp"},
        "dragoman-notes": {"command": "notes", "args": ["stdio"]},
    }
    found = read(json.dumps({"mcpServers": servers})).connectors
    assert [one.name for one in found if one.is_dragoman] == ["dragoman", "mine", "Dragoman"]
