"""The form of a connector: what was typed as facts that the hub takes, and a connector as a form. Pure."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.connector import Configuration, Connector
from dragoman.errors import InvalidConfig

WAYS = {"command": "Command", "url": "URL", "openapi": "OpenAPI", "paste": "Paste mcpServers"}
_NUMBERS = {
    "connect_timeout": float,
    "request_timeout": float,
    "idle_ttl": float,
    "health_interval": float,
    "cache_ttl": float,
    "max_concurrency": int,
    "calls_per_minute": int,
    "max_servers": int,
}
_WORDS = ("isolation", "pin", "approval")
_SWITCHES = ("auto_reconnect", "eager")
_SELECTION = ("tags", "paths", "methods", "include", "exclude")
_NAMES = {
    "connect_timeout": "time to connect",
    "request_timeout": "time of a call",
    "idle_ttl": "idle time",
    "health_interval": "time between health checks",
    "cache_ttl": "time that results are kept",
    "max_concurrency": "calls at once",
    "calls_per_minute": "calls a minute",
    "max_servers": "connections at once",
    "approval": "approval",
    "deferred": "whether models have to search",
    "cwd": "working directory",
    "transport": "transport",
    "server": "server address",
}


def way_of(configuration: Configuration) -> str:
    return "openapi" if configuration.openapi else "url" if configuration.url else "command"


def facts_of(typed: Mapping[str, str], before: Configuration | None = None) -> dict[str, Any]:
    """What the hub takes. With `before` only a change: what cannot be taken away by one is refused."""
    way = typed.get("by", "command")
    facts = {"command": _command, "url": _address, "openapi": _service}[way if way in WAYS else "command"](
        typed, before
    )
    facts |= _treatment(typed)
    personal = _list(typed, "personal")
    if personal or before is not None:
        facts["personal"] = personal
    if before is not None:
        _check_taken_away(before, facts, typed)
    return facts


def filled(connector: Connector | None, way: str = "command") -> dict[str, Any]:
    """What the form shows of a connector; of none, what holds where nothing is said."""
    configuration = connector.configuration if connector else Configuration(kind="native")
    auth, select = configuration.auth, configuration.select
    values: dict[str, Any] = {
        "by": way_of(configuration) if connector else way,
        "name": connector.slug if connector else "",
        "description": connector.description if connector else "",
        "command": shlex.join([configuration.command, *configuration.args]) if configuration.command else "",
        "cwd": configuration.cwd or "",
        "env": _lines(configuration.env, "="),
        "url": configuration.url or "",
        "transport": configuration.transport or "",
        "headers": _lines(configuration.headers, ": "),
        "openapi": configuration.openapi or "",
        "server": configuration.server or "",
        "auth": auth.kind,
        "key_header": auth.header,
        "key_in": auth.place,
        "flow": auth.flow,
        "client_id": auth.client_id or "",
        "issuer": auth.issuer or "",
        "scopes": " ".join(auth.scopes),
        "personal": " ".join(configuration.personal),
        "secrets": configuration.secrets,
        "deferred": {None: "", True: "yes", False: "no"}[configuration.deferred],
    }
    values |= {name: " ".join(getattr(select, name)) for name in _SELECTION}
    values |= {name: _plain(getattr(configuration, name)) for name in (*_NUMBERS, *_WORDS)}
    return values | {name: getattr(configuration, name) for name in _SWITCHES}


# The ways to reach it


def _command(typed: Mapping[str, str], before: Configuration | None) -> dict[str, Any]:
    try:
        words = shlex.split(typed.get("command", ""))
    except ValueError:
        raise InvalidConfig("a quotation mark of the command is not closed") from None
    if not words:
        raise InvalidConfig("the command is empty", hint="for example: uvx mcp-server-time")
    env, secret = _pairs(typed, "env", "="), _pairs(typed, "secret_env", "=")
    facts: dict[str, Any] = {"command": words[0], "args": words[1:]}
    if cwd := typed.get("cwd", "").strip():
        facts["cwd"] = cwd
    facts["env"] = _changes(before.env if before else {}, env) | _dropped(typed, "env") | secret
    return facts | {"secret": [f"env:{name}" for name in secret]}


def _address(typed: Mapping[str, str], before: Configuration | None) -> dict[str, Any]:
    url = typed.get("url", "").strip()
    if not url:
        raise InvalidConfig("the URL is empty", hint="for example: https://mcp.example.com/mcp")
    facts: dict[str, Any] = {"url": url, **_headers(typed, before), **_credential(typed, before)}
    if transport := typed.get("transport"):
        facts["transport"] = transport
    return facts


def _service(typed: Mapping[str, str], before: Configuration | None) -> dict[str, Any]:
    document = typed.get("openapi", "").strip()
    if not document:
        raise InvalidConfig(
            "the address of the document is empty", hint="for example: https://api.example.com/openapi.json"
        )
    facts = {"kind": "openapi", "openapi": document, **_headers(typed, before), **_credential(typed, before)}
    if server := typed.get("server", "").strip():
        facts["server"] = server
    select = {name: _list(typed, name) for name in _SELECTION}
    if any(select.values()) or before is not None:
        facts["select"] = select
    return facts


def _headers(typed: Mapping[str, str], before: Configuration | None) -> dict[str, Any]:
    headers, secret = _pairs(typed, "headers", ":"), _pairs(typed, "secret_headers", ":")
    kept = _changes(before.headers if before else {}, headers) | _dropped(typed, "header") | secret
    return {"headers": kept, "secret": [f"header:{name}" for name in secret]}


def _credential(typed: Mapping[str, str], before: Configuration | None) -> dict[str, Any]:
    """An empty token of a kind that it had already keeps the one that is there."""
    kind, token = typed.get("auth", "none"), typed.get("token", "")
    had = before.auth.kind if before else "none"
    if kind == "none":
        return {"auth": {"kind": "none"}} if had != "none" else {}
    if kind == "oauth":
        return _authorisation(typed)
    if "auth" in _list(typed, "personal"):
        return {"auth": _sent(typed, kind)}
    if not token:
        if had == kind:
            return {"auth": _sent(typed, kind)}
        raise InvalidConfig("the token is empty", hint="paste it, or choose that nothing is needed")
    field = {"bearer": "bearer", "apikey": "api_key", "basic": "basic"}.get(kind)
    if field is None:
        raise InvalidConfig(f"there is no way {kind[:40]!r} to sign in")
    facts = {field: token}
    if kind == "apikey":
        facts |= {"api_key_header": typed.get("key_header", "").strip() or "X-API-Key"}
        facts |= {"api_key_in": typed.get("key_in") or "header"}
    return facts


def _sent(typed: Mapping[str, str], kind: str) -> dict[str, Any]:
    header = typed.get("key_header", "").strip()
    facts = (
        {"kind": kind, "header": header, "place": typed.get("key_in", "")}
        if kind == "apikey"
        else {"kind": kind}
    )
    return {name: value for name, value in facts.items() if value}


def _authorisation(typed: Mapping[str, str]) -> dict[str, Any]:
    auth: dict[str, Any] = {"kind": "oauth", "flow": typed.get("flow") or "code"}
    auth |= {name: word for name in ("client_id", "issuer") if (word := typed.get(name, "").strip())}
    if scopes := _list(typed, "scopes"):
        auth["scopes"] = scopes
    secret = typed.get("client_secret", "")
    return {"auth": auth} | ({"oauth_client_secret": secret} if secret else {})


# How it is treated


def _treatment(typed: Mapping[str, str]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name, kind in _NUMBERS.items():
        if text := typed.get(name, "").strip():
            try:
                facts[name] = kind(text)
            except ValueError:
                raise InvalidConfig(f"{_NAMES[name]} must be a number, not {text[:40]!r}") from None
    facts |= {name: word for name in _WORDS if (word := typed.get(name, ""))}
    if deferred := typed.get("deferred"):
        facts["deferred"] = deferred == "yes"
    if typed.get("has_switches"):
        facts |= {name: name in typed for name in _SWITCHES}
    return facts


def _check_taken_away(before: Configuration, facts: Mapping[str, Any], typed: Mapping[str, str]) -> None:
    """A change sets; it does not forget. Better said than to show a save that saved nothing."""
    for name, what in _NAMES.items():
        if name in typed and getattr(before, name) is not None and name not in facts:
            raise InvalidConfig(
                f"{what} cannot be taken away again, only changed",
                hint="give another value, or remove the connector and add it anew",
            )


# Words and lines


def _pairs(typed: Mapping[str, str], field: str, between: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, line in enumerate(typed.get(field, "").splitlines(), 1):
        if not line.strip():
            continue
        name, found, value = line.partition(between)
        if not found or not name.strip():
            form = f"NAME{between}value" if between == "=" else "Name: value"
            raise InvalidConfig(f"line {number} of {field.replace('_', ' ')} is not {form}")
        pairs[name.strip()] = value.strip()
    return pairs


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """As the hub takes a change: None takes a name away."""
    return {**dict.fromkeys(before.keys() - after.keys()), **after}


def _dropped(typed: Mapping[str, str], prefix: str) -> dict[str, str | None]:
    """Secrets whose box was ticked."""
    start = f"drop:{prefix}:"
    return {name.removeprefix(start): None for name in typed if name.startswith(start)}


def _list(typed: Mapping[str, str], field: str) -> list[str]:
    return typed.get(field, "").replace(",", " ").split()


def _lines(values: Mapping[str, str], between: str) -> str:
    return "\n".join(f"{name}{between}{value}" for name, value in values.items())


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def typed_of(items: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """What a browser sent, texts only."""
    return {name: value for name, value in items if isinstance(value, str)}
