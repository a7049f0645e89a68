"""`dragoman connectors …`: the sources of tools."""

import os
from typing import Any

import typer

from dragoman.cli import connector_options as options
from dragoman.cli.discovery import RegistryChoice, add_from_registry
from dragoman.cli.door import Door, path_of
from dragoman.cli.input_values import Inputs, values_of
from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, session
from dragoman.cli.tables import connector_card, connectors_table

app = typer.Typer(
    no_args_is_help=True,
    help="Add, look at, change and remove connectors: the servers whose tools Dragoman offers.",
)


def _facts(
    command: options.Command,
    url: options.Url = None,
    transport: options.Transport = None,
    header: options.Headers = None,
    bearer: options.Bearer = None,
    bearer_env: options.BearerEnv = None,
    api_key: options.ApiKey = None,
    api_key_env: options.ApiKeyEnv = None,
    api_key_header: options.ApiKeyHeader = None,
    basic_env: options.BasicEnv = None,
    env: options.Variables = None,
    secret_env: options.SecretVariables = None,
    **plain: Any,
) -> dict[str, Any]:
    """The options as the REST door wants them: only what was given."""
    secrets = _pairs("--secret-env", secret_env)
    facts: dict[str, Any] = {
        "command": command[0] if command else None,
        "args": command[1:] if command and len(command) > 1 else None,
        "url": url,
        "transport": transport,
        "headers": _pairs("--header", header) or None,
        "bearer": bearer or _from_environment(bearer_env),
        "api_key": api_key or _from_environment(api_key_env),
        "api_key_header": api_key_header,
        "basic": _from_environment(basic_env),
        "oauth_client_secret": _from_environment(plain.pop("oauth_client_secret_env", None)),
        "auth": _authorisation(plain) or None,
        "select": _selected(plain) or None,
        "env": {**_pairs("--env", env), **secrets} or None,
        "secret": [f"env:{name}" for name in secrets] or None,
        **plain,
    }
    return {name: value for name, value in facts.items() if value is not None}


_ADD = """Add a connector and connect once, to show that it works and to learn its tools.

\b
dragoman connectors add time -- uvx mcp-server-time
dragoman connectors add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents
dragoman connectors add tickets --url https://mcp.example.com/mcp --bearer-env TICKETS_TOKEN
dragoman connectors add mail --secret-env PASSWORD=… -- python mail_server.py
dragoman connectors add shop --openapi http://127.0.0.1:8000
dragoman connectors add --from-registry io.github.owner/server

A server that cannot be reached now is kept, with its cause, and tried again.
"""


@app.command("add", help=_ADD)
def add(
    name: options.NewName = None,
    command: options.Command = None,
    url: options.Url = None,
    openapi: options.OpenApi = None,
    server: options.Server = None,
    tag: options.Tags = None,
    path: options.Paths = None,
    method: options.Methods = None,
    include: options.Included = None,
    exclude: options.Excluded = None,
    transport: options.Transport = None,
    header: options.Headers = None,
    bearer: options.Bearer = None,
    bearer_env: options.BearerEnv = None,
    api_key: options.ApiKey = None,
    api_key_env: options.ApiKeyEnv = None,
    api_key_header: options.ApiKeyHeader = None,
    api_key_in: options.ApiKeyIn = None,
    basic_env: options.BasicEnv = None,
    env: options.Variables = None,
    secret_env: options.SecretVariables = None,
    cwd: options.Directory = None,
    personal: options.Personal = None,
    oauth: options.OAuth = None,
    oauth_client_id: options.OAuthClient = None,
    oauth_client_secret_env: options.OAuthClientSecret = None,
    oauth_scope: options.OAuthScopes = None,
    oauth_issuer: options.OAuthIssuer = None,
    oauth_client_credentials: options.OAuthClientCredentials = None,
    isolation: options.Isolation = None,
    pin: options.Pin = None,
    connect_timeout: options.ConnectTimeout = None,
    request_timeout: options.RequestTimeout = None,
    idle_ttl: options.IdleTtl = None,
    max_concurrency: options.Concurrency = None,
    shared_concurrency: options.AtOnce = None,
    calls_per_minute: options.PerMinute = None,
    approval: options.Approval = None,
    cache_ttl: options.CacheTtl = None,
    eager: options.Eager = None,
    deferred: options.Deferred = None,
    auto_reconnect: options.AutoReconnect = None,
    description: options.Description = None,
    shared: options.Shared = None,
    from_registry: options.FromRegistry = None,
    way: options.Way = 1,
    inputs: Inputs = None,
    yes: options.Yes = False,
    connect: options.Connect = True,
    as_json: AsJson = False,
) -> None:
    given = _given(locals(), "from_registry", "way", "inputs", "yes")
    choice = _choice(name, from_registry, way, inputs, yes, given)
    with session(as_json) as (door, screen):
        if choice:
            return _show_added(screen, add_from_registry(door, screen, choice))
        with screen.busy(f"connecting to {name} …"):
            connector = door.ask("POST", path_of("connectors"), {"name": name, **_facts(**given)})
        return _show_added(screen, connector)


@app.command("update")
def update(
    name: options.Name,
    command: options.Command = None,
    url: options.Url = None,
    openapi: options.OpenApi = None,
    server: options.Server = None,
    tag: options.Tags = None,
    path: options.Paths = None,
    method: options.Methods = None,
    include: options.Included = None,
    exclude: options.Excluded = None,
    transport: options.Transport = None,
    header: options.Headers = None,
    bearer: options.Bearer = None,
    bearer_env: options.BearerEnv = None,
    api_key: options.ApiKey = None,
    api_key_env: options.ApiKeyEnv = None,
    api_key_header: options.ApiKeyHeader = None,
    api_key_in: options.ApiKeyIn = None,
    basic_env: options.BasicEnv = None,
    env: options.Variables = None,
    secret_env: options.SecretVariables = None,
    cwd: options.Directory = None,
    personal: options.Personal = None,
    oauth: options.OAuth = None,
    oauth_client_id: options.OAuthClient = None,
    oauth_client_secret_env: options.OAuthClientSecret = None,
    oauth_scope: options.OAuthScopes = None,
    oauth_issuer: options.OAuthIssuer = None,
    oauth_client_credentials: options.OAuthClientCredentials = None,
    isolation: options.Isolation = None,
    pin: options.Pin = None,
    connect_timeout: options.ConnectTimeout = None,
    request_timeout: options.RequestTimeout = None,
    idle_ttl: options.IdleTtl = None,
    max_concurrency: options.Concurrency = None,
    shared_concurrency: options.AtOnce = None,
    calls_per_minute: options.PerMinute = None,
    approval: options.Approval = None,
    cache_ttl: options.CacheTtl = None,
    eager: options.Eager = None,
    deferred: options.Deferred = None,
    auto_reconnect: options.AutoReconnect = None,
    description: options.Description = None,
    connect: options.Connect = True,
    as_json: AsJson = False,
) -> None:
    """Change what is given and keep the rest. Calls under way finish on the old connection.

    \b
    dragoman connectors update time --request-timeout 5
    dragoman connectors update time -- uvx mcp-server-time --local-timezone=Europe/Rome
    dragoman connectors update tickets --bearer-env NEW_TOKEN
    """
    given = _given(locals())
    with session(as_json) as (door, screen):
        with screen.busy(f"updating {name} …"):
            connector = door.ask("PATCH", path_of("connectors", name), _facts(**given))
        _show_added(screen, connector)


@app.command("list")
def list_connectors(as_json: AsJson = False) -> None:
    """List the connectors with their state, the cause of trouble and the next attempt."""
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("connectors"))
        if as_json:
            return screen.data(answer)
        # The functions of this process are a connector too, and of no interest while there are none.
        shown = [one for one in answer["connectors"] if one["kind"] != "native" or one["tools"]]
        if not shown:
            return screen.note(
                "there is no connector yet: dragoman connectors add time -- uvx mcp-server-time"
            )
        return screen.show(connectors_table(shown))


@app.command("show")
def show(name: options.Name, as_json: AsJson = False) -> None:
    """Show one connector: how it is reached, how it does, and what its server last wrote to stderr."""
    _act(name, "", as_json)


@app.command("remove")
def remove(name: options.Name, as_json: AsJson = False) -> None:
    """Remove a connector with its tools, secrets and numbers. Calls under way finish."""
    with session(as_json) as (door, screen):
        with screen.busy(f"removing {name} …"):
            door.ask("DELETE", path_of("connectors", name))
        if as_json:
            screen.data({"removed": name})
        else:
            screen.note(f"{name} is removed")


@app.command("enable")
def enable(name: options.Name, as_json: AsJson = False) -> None:
    """Let its tools be called again."""
    _act(name, "enable", as_json)


@app.command("disable")
def disable(name: options.Name, as_json: AsJson = False) -> None:
    """Keep the connector, but close its connections and refuse calls."""
    _act(name, "disable", as_json)


@app.command("connect")
def connect_now(name: options.Name, as_json: AsJson = False) -> None:
    """Connect now and say how that went. Ends with 1 when it did not work."""
    connector = _act(name, "connect", as_json)
    if connector["status"]["state"] != "connected":
        raise typer.Exit(1)


@app.command("disconnect")
def disconnect(name: options.Name, as_json: AsJson = False) -> None:
    """Close the connection; the next call opens it again."""
    _act(name, "disconnect", as_json)


@app.command("refresh")
def refresh(name: options.Name, as_json: AsJson = False) -> None:
    """List the tools anew and say what changed."""
    with session(as_json) as (door, screen):
        with screen.busy(f"listing the tools of {name} …"):
            changes = door.ask("POST", path_of("connectors", name, "refresh"))
        if as_json:
            screen.data(changes)
        else:
            _show_changes(screen, changes)


def _act(name: str, action: str, as_json: bool) -> dict[str, Any]:
    with session(as_json) as (door, screen):
        connector = _answered(door, screen, name, action)
        if as_json:
            screen.data(connector)
        else:
            screen.show(connector_card(connector))
        return connector


def _answered(door: Door, screen: Screen, name: str, action: str) -> dict[str, Any]:
    if not action:
        return door.ask("GET", path_of("connectors", name))
    with screen.busy(f"{action} {name} …"):
        return door.ask("POST", path_of("connectors", name, action))


def _show_added(screen: Screen, connector: dict[str, Any]) -> None:
    if screen.as_json:
        screen.data(connector)
    else:
        screen.show(connector_card(connector))
    status = connector["status"]
    if status["state"] in ("error", "needs_auth", "reconnecting"):
        screen.warn(f"it is kept, but does not work yet: {status['cause']}")
    elif not screen.as_json and connector["tools"]:
        screen.note(f"see what it can do: dragoman tools list {connector['slug']}")


def _show_changes(screen: Screen, changes: dict[str, Any]) -> None:
    from rich.text import Text

    for sign, style, names in (("+", "green", changes["added"]), ("-", "red", changes["removed"])):
        for name in names:
            screen.show(Text(f"{sign} {name}", style))
    for change in changes["changed"]:
        blocked = " (blocked until you accept it)" if change["is_blocked"] else ""
        screen.show(Text(f"~ {change['tool']} is now version {change['version']}{blocked}", "yellow"))
        screen.text(change["diff"])
    for skipped in changes["skipped"]:
        screen.warn(skipped)
    screen.show(Text(f"{changes['unchanged']} unchanged", "dim"))


def _given(options: dict[str, Any], *leave_out: str) -> dict[str, Any]:
    left_out = ("name", "as_json", "header", *leave_out)
    facts = {name: value for name, value in options.items() if name not in left_out}
    return {**facts, "header": options["header"]}


def _choice(
    name: str | None,
    offered: str | None,
    way: int,
    inputs: list[str] | None,
    yes: bool,
    given: dict[str, Any],
) -> RegistryChoice | None:
    """What is wanted of the registry; None when the command line itself describes the server."""
    if offered is None:
        if name is None:
            raise typer.BadParameter("give the connector a name", param_hint="NAME")
        return None
    described = [field for field in ("command", "url", "openapi") if given[field]]
    if described:
        raise typer.BadParameter(f"the registry says the {described[0]}", param_hint="--from-registry")
    if given.get("shared"):
        raise typer.BadParameter("what a registry offers is added for yourself", param_hint="--shared")
    return RegistryChoice(
        offered=offered, name=name, way=way, inputs=values_of(inputs), is_agreed=yes, connect=given["connect"]
    )


def _selected(plain: dict[str, Any]) -> dict[str, list[str]]:
    """The options that choose among the operations of a document, taken out of the others."""
    fields = {"tag": "tags", "path": "paths", "method": "methods", "include": "include", "exclude": "exclude"}
    taken = {field: plain.pop(option, None) for option, field in fields.items()}
    return {field: words for field, words in taken.items() if words}


def _authorisation(plain: dict[str, Any]) -> dict[str, Any]:
    """The options of OAuth, taken out of the others. Any of them means OAuth."""
    fields = {"oauth_client_id": "client_id", "oauth_scope": "scopes", "oauth_issuer": "issuer"}
    taken = {field: plain.pop(option, None) for option, field in fields.items()}
    by_client, is_wanted = plain.pop("oauth_client_credentials", None), plain.pop("oauth", None)
    given = {field: value for field, value in taken.items() if value}
    if not (is_wanted or by_client or given):
        return {}
    return {"kind": "oauth", "flow": "client_credentials" if by_client else "code", **given}


def _pairs(option: str, words: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words or []:
        name, sign, value = word.partition("=")
        if not sign or not name:
            # The word is not repeated: half of it may be a secret.
            raise typer.BadParameter("give it as NAME=VALUE", param_hint=option)
        pairs[name] = value
    return pairs


def _from_environment(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not (value := os.environ.get(variable)):
        raise typer.BadParameter(f"the variable {variable} is not set")
    return value
