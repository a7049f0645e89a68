"""Where MCP clients keep their configuration, and the words that they use in it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Form = Literal["json", "toml"]
NAME = "dragoman"


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """`table` is where its servers stand; `speaks_http` says whether its file takes an address.

    `timeouts` are those that its file has: long enough for a first start and for calls that take their time.
    """

    name: str
    title: str
    table: str
    file: Path
    form: Form = "json"
    speaks_http: bool = True
    has_type: bool = False
    after: str = ""
    timeouts: Mapping[str, int] = field(default_factory=dict[str, int])

    def program(self, command: str, args: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "stdio"} if self.has_type else {}
        entry |= {"command": command, "args": args}
        return {**entry, **({"env": dict(environment)} if environment else {}), **self.timeouts}

    def address(self, url: str, token: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        if self.form == "toml":
            return {"url": url, "http_headers": headers, **self.timeouts}
        return {
            **({"type": "http"} if self.has_type else {}),
            "url": url,
            "headers": headers,
            **self.timeouts,
        }


def clients(home: Path | None = None, platform: str = sys.platform) -> dict[str, ClientProgram]:
    home = home or Path.home()
    settings = _settings_folder(home, platform)
    known = (
        ClientProgram(
            "claude",
            "Claude Code",
            "mcpServers",
            home / ".claude.json",
            has_type=True,
            after="start claude anew",
        ),
        ClientProgram(
            "claude-desktop",
            "Claude Desktop",
            "mcpServers",
            settings / "Claude" / "claude_desktop_config.json",
            speaks_http=False,
            after="quit Claude Desktop and start it again",
        ),
        ClientProgram(
            "cursor", "Cursor", "mcpServers", home / ".cursor" / "mcp.json", after="Cursor asks to enable it"
        ),
        ClientProgram(
            "vscode",
            "VS Code",
            "servers",
            settings / "Code" / "User" / "mcp.json",
            has_type=True,
            after="VS Code shows a Start button above it",
        ),
        ClientProgram(
            "codex",
            "Codex",
            "mcp_servers",
            home / ".codex" / "config.toml",
            "toml",
            after="start codex anew",
            timeouts={"startup_timeout_sec": 30, "tool_timeout_sec": 300},
        ),
    )
    return {client.name: client for client in known}


def _settings_folder(home: Path, platform: str) -> Path:
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(os.environ.get("APPDATA", home / "AppData" / "Roaming"))
    return Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))
