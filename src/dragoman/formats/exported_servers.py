"""Connectors as `mcpServers`, for every client that reads that. A secret that is left out is a `${VAR}`."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.connector import Connector


def write_servers(connectors: Iterable[Connector], secrets: Mapping[str, Mapping[str, str]]) -> str:
    """`secrets` are the revealed ones, by the connector's id. Only MCP servers can be written so."""
    servers = {
        one.slug: _server(one, _Values(one, secrets.get(one.id, {})))
        for one in connectors
        if one.kind == "mcp"
    }
    return json.dumps({"mcpServers": servers}, indent=2, ensure_ascii=False) + "\n"


class _Values:
    """The secrets of one connector, or what stands for them."""

    def __init__(self, connector: Connector, revealed: Mapping[str, str]) -> None:
        self._slug = connector.slug
        self._names = connector.configuration.secrets
        self._revealed = revealed

    def of(self, prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): self[name] for name in self._names if name.startswith(prefix)}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> str:
        if name in self._revealed:
            return self._revealed[name]
        kind, _, word = name.partition(":")
        variable = word if kind == "env" else f"{self._slug}_{word or 'token'}"
        return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', variable) if kind == 'env' else _shouted(variable)}}}"


def _shouted(words: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", words.upper())


def _server(connector: Connector, values: _Values) -> dict[str, Any]:
    configuration = connector.configuration
    if configuration.command:
        server: dict[str, Any] = {
            "command": configuration.command,
            "args": list(configuration.args),
            "env": {**configuration.env, **values.of("env:")},
            "cwd": configuration.cwd,
        }
    else:
        server = {
            "type": configuration.wire,
            "url": configuration.url,
            "headers": {**configuration.headers, **values.of("header:"), **_authorization(connector, values)},
        }
    server["description"] = connector.description
    written = {name: value for name, value in server.items() if value not in ("", [], {}, None)}
    return written if connector.enabled else {**written, "disabled": True}


def _authorization(connector: Connector, values: _Values) -> dict[str, str]:
    auth = connector.configuration.auth
    if auth.kind == "none" or "auth" not in values:
        return {}
    if auth.kind == "apikey":
        return {auth.header: values["auth"]}
    return {"Authorization": f"{auth.kind.title()} {values['auth']}"}
