"""`mcpServers` of Claude Desktop, Claude Code, Cursor and Windsurf, `servers` of VS Code, Codex's tables.

Read, and written for every client that reads them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from dragoman.connector import Connector
from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats.import_plan import (
    FoundConnector,
    ImportPlan,
    ImportProblem,
    RequiredInput,
    named,
    not_taken,
)
from dragoman.formats.parsing import entries, pairs, table, text_of, truth, words
from dragoman.formats.variables import BaseFolders, Variables
from dragoman.secret_recognition import names_in, with_placeholders

_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "sse": "sse",
}
_ADDRESSES = ("url", "serverUrl", "httpUrl")
_REACH = ("type", "transport", "command", "args", "env", "envFile", "cwd", "headers", *_ADDRESSES)
_CODEX = (
    *("http_headers", "env_http_headers", "bearer_token_env_var", "env_vars"),
    *("startup_timeout_sec", "tool_timeout_sec"),
)
_BESIDE = ("disabled", "enabled", "timeout", "description", "name", "auto_discover", "autoDiscover")


def read_servers(
    servers: Mapping[str, Any], places: BaseFolders, inputs: Mapping[str, RequiredInput] | None = None
) -> ImportPlan:
    """Every entry by itself: one that cannot be read is a problem, and the others are found."""
    connectors: list[FoundConnector] = []
    problems: list[ImportProblem] = []
    for name, entry in servers.items():
        try:
            connectors.append(read_server(name, entry, Variables(places, inputs or {})))
        except DragomanError as error:
            problems.append(ImportProblem(entry=name[:200], reason=error.message))
    return ImportPlan(format="mcpServers", connectors=tuple(connectors), problems=tuple(problems))


def read_server(name: str, entry: Any, variables: Variables) -> FoundConnector:
    if not isinstance(entry, Mapping):
        raise InvalidConfig("it must be a table with a command or a url")
    facts = _flat(table(entry))
    facts = {**facts, **_of_codex(facts)}
    slug, aliases = named(name)
    warnings: list[str] = []
    url = next((facts[key] for key in _ADDRESSES if facts.get(key)), None)
    transport = _transport(facts, "httpUrl" in facts)
    found: dict[str, Any] = {
        "command": text_of(facts.get("command"), "command"),
        "args": words(facts.get("args"), "args"),
        "env": pairs(facts.get("env"), "env"),
        "cwd": text_of(facts.get("cwd"), "cwd"),
        "url": text_of(url, "url"),
        "headers": pairs(facts.get("headers"), "headers"),
        # A command speaks stdio and nothing else: saying so again would make equal connectors differ.
        "transport": None if transport == "stdio" else transport,
        "request_timeout": _seconds(facts.get("timeout"), warnings),
        "connect_timeout": facts.get("startup_timeout_sec"),
    }
    _check_one_way(found, transport)
    warnings += not_taken(facts, {*_REACH, *_BESIDE, *_CODEX})
    given = {field: _translated(value, field, variables) for field, value in found.items() if value}
    env_file = text_of(facts.get("envFile"), "envFile")
    return FoundConnector(
        name=name,
        slug=slug,
        aliases=aliases,
        description=text_of(facts.get("description"), "description") or "",
        enabled=_is_enabled(facts),
        facts=given,
        env_file=env_file and variables.translated(env_file, "envFile"),
        is_dragoman=_is_dragoman(slug, given),
        needs=tuple(variables.needs.values()),
        warnings=tuple(warnings),
    )


def read_inputs(raw: Iterable[Any]) -> dict[str, RequiredInput]:
    """The `inputs` of VS Code: what the editor would ask for."""
    needs: dict[str, RequiredInput] = {}
    for item in map(table, raw):
        name = str(item.get("id") or "")
        default = item.get("default")
        options = [
            table(one).get("value") or table(one).get("label") or one for one in entries(item.get("options"))
        ]
        if name:
            needs[name] = RequiredInput(
                name=name,
                description=str(item.get("description") or ""),
                is_secret=item.get("password") is True,
                default=default if isinstance(default, str) and default else None,
                choices=tuple(str(one) for one in options),
            )
    return needs


def looks_like_server(value: Any) -> bool:
    return bool(table(value).keys() & {"command", *_ADDRESSES})


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """Some people write `transport` as a table that holds type, url and headers."""
    inner = facts.get("transport")
    return {**facts, "transport": None, **table(inner)} if isinstance(inner, Mapping) else facts


def _of_codex(facts: dict[str, Any]) -> dict[str, Any]:
    """What Codex writes in words of its own, in the words of all others."""
    headers = pairs(facts.get("http_headers"), "http_headers")
    for name, variable in pairs(facts.get("env_http_headers"), "env_http_headers").items():
        headers[name] = f"${{{variable}}}"
    if variable := text_of(facts.get("bearer_token_env_var"), "bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    handed_on = {name: f"${{{name}}}" for name in words(facts.get("env_vars"), "env_vars")}
    found: dict[str, Any] = {"timeout": facts.get("tool_timeout_sec")} if "tool_timeout_sec" in facts else {}
    if headers:
        found["headers"] = {**pairs(facts.get("headers"), "headers"), **headers}
    if handed_on:
        found["env"] = {**handed_on, **pairs(facts.get("env"), "env")}
    return found


def _is_dragoman(slug: str, facts: Mapping[str, Any]) -> bool:
    """Whether it is what `dragoman connect` writes: taken over, Dragoman would be a server of itself."""
    command, args = str(facts.get("command", "")), tuple(facts.get("args", ()))
    is_program = command.rpartition("/")[2] == "dragoman" or args[:2] == ("-m", "dragoman")
    return (is_program and "stdio" in args) or (slug == "dragoman" and "/mcp" in str(facts.get("url", "")))


def _transport(facts: Mapping[str, Any], is_http: bool) -> str | None:
    written = facts.get("type") or facts.get("transport")
    if written is None:
        return "http" if is_http else None
    transport = _TRANSPORTS.get(str(written).lower())
    if transport is None:
        raise InvalidConfig(f"its type is {str(written)[:40]!r}; Dragoman knows stdio, http and sse")
    return transport


def _check_one_way(found: Mapping[str, Any], transport: str | None) -> None:
    if not found["command"] and not found["url"]:
        raise InvalidConfig("it has neither a command nor a url")
    if found["command"] and found["url"]:
        raise InvalidConfig("it has a command and a url: only one of them can be meant")
    if (transport == "stdio") != bool(found["command"]) and transport is not None:
        wanted = "a command" if transport == "stdio" else "a url"
        raise InvalidConfig(f"its type is {transport}, which needs {wanted}")


def _is_enabled(facts: Mapping[str, Any]) -> bool:
    if facts.get("disabled") is not None:
        return not truth(facts["disabled"], "disabled")
    return facts.get("enabled") is None or truth(facts["enabled"], "enabled")


def _seconds(value: Any, warnings: list[str]) -> float | None:
    """Some write seconds, some milliseconds: nobody waits longer than an hour for one answer."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise InvalidConfig("timeout must be a number greater than zero")
    seconds = value / 1000 if value > 3600 else float(value)
    warnings.append(f"timeout {value:g} was read as {seconds:g} seconds")
    return seconds


def _translated(value: Any, field: str, variables: Variables) -> Any:
    if isinstance(value, str):
        return variables.translated(value, field) if field != "transport" else value
    if isinstance(value, tuple):
        return tuple(
            variables.translated(item, field) for item in words([*cast("tuple[str, ...]", value)], field)
        )
    if isinstance(value, Mapping):
        return {name: variables.translated(item, field) for name, item in pairs(table(value), field).items()}
    return value


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

    def filled(self, text: str) -> str:
        """The text with what stands for its secrets in their places."""
        return with_placeholders(text, {name: self[name] for name in names_in((text,))})

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
            "args": [values.filled(word) for word in configuration.args],
            "env": {**configuration.env, **values.of("env:")},
            "cwd": configuration.cwd,
        }
    else:
        server = {
            "type": configuration.wire,
            "url": values.filled(configuration.url or ""),
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
