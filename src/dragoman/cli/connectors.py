"""`dragoman connectors …`: the sources of tools."""

import os
from typing import Annotated, Any

import typer

from dragoman.cli.chips import connector_card, connectors_table
from dragoman.cli.discovery import Choice, add_from_registry
from dragoman.cli.door import Door, path_of
from dragoman.cli.inputs import Inputs, values_of
from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, session

app = typer.Typer(
    no_args_is_help=True,
    help="Add, look at, change and remove connectors: the servers whose tools Dragoman offers.",
)

Name = Annotated[str, typer.Argument(help="The connector's name.", show_default=False)]
NewName = Annotated[str | None, typer.Argument(help="The connector's name.", show_default=False)]
FromRegistry = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A server that dragoman discover shows.", show_default=False),
]
Way = Annotated[int, typer.Option(help="Which of its ways, as dragoman discover numbers them.", min=1)]
Yes = Annotated[bool, typer.Option("--yes", help="Add it without asking; what runs is shown all the same.")]
Command = Annotated[
    list[str] | None, typer.Argument(help="After --: the program that is the server.", show_default=False)
]
Url = Annotated[str | None, typer.Option(help="The address of a remote server.")]
OpenApi = Annotated[
    str | None,
    typer.Option("--openapi", metavar="WHERE", help="An OpenAPI service: its URL, its document, or a file."),
]
Server = Annotated[str | None, typer.Option(help="Where the OpenAPI service is, if not where it says.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="OpenAPI: only operations with this tag.")]
Paths = Annotated[list[str] | None, typer.Option("--path", help="OpenAPI: only paths like /orders/*.")]
Methods = Annotated[list[str] | None, typer.Option("--method", help="OpenAPI: only this method.")]
Included = Annotated[list[str] | None, typer.Option("--include", help="OpenAPI: only operations so named.")]
Excluded = Annotated[list[str] | None, typer.Option("--exclude", help="OpenAPI: no operation so named.")]
Transport = Annotated[str | None, typer.Option(help="http or sse, where the address does not tell.")]
Headers = Annotated[
    list[str] | None, typer.Option("--header", metavar="K=V", help="Sent with every request.")
]
Bearer = Annotated[str | None, typer.Option(help="A token; encrypted. Better: --bearer-env.")]
BearerEnv = Annotated[str | None, typer.Option(metavar="VAR", help="Read the token from this variable now.")]
ApiKey = Annotated[str | None, typer.Option(help="A key for the header of --api-key-header; encrypted.")]
ApiKeyEnv = Annotated[str | None, typer.Option(metavar="VAR", help="Read the key from this variable now.")]
ApiKeyHeader = Annotated[str | None, typer.Option(help="X-API-Key unless you say otherwise.")]
ApiKeyIn = Annotated[str | None, typer.Option(help="OpenAPI: header, query or cookie.")]
BasicEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="OpenAPI: read user:password from this variable now.")
]
Variables = Annotated[list[str] | None, typer.Option("--env", metavar="K=V", help="For the program.")]
SecretVariables = Annotated[
    list[str] | None, typer.Option("--secret-env", metavar="K=V", help="The same, encrypted.")
]
Directory = Annotated[str | None, typer.Option(help="Where the program runs.")]
Isolation = Annotated[str | None, typer.Option(help="One connection per: shared, user or thread.")]
Pin = Annotated[str | None, typer.Option(help="When a tool's definition changes: off, warn or block.")]
ConnectTimeout = Annotated[float | None, typer.Option(help="Seconds.")]
RequestTimeout = Annotated[float | None, typer.Option(help="Seconds.")]
IdleTtl = Annotated[float | None, typer.Option(help="Seconds until an idle connection closes; 0 never.")]
Concurrency = Annotated[int | None, typer.Option("--max-concurrency", help="Most calls at once.")]
AtOnce = Annotated[
    int | None,
    typer.Option(
        "--shared-concurrency", min=1, help="Most calls at once over all processes; more are refused."
    ),
]
PerMinute = Annotated[int | None, typer.Option(min=1, help="Most calls a minute, of everybody together.")]
Approval = Annotated[str | None, typer.Option(help="When a person must say yes: never, default or always.")]
CacheTtl = Annotated[float | None, typer.Option(help="Seconds that results of read-only tools are kept.")]
Eager = Annotated[bool | None, typer.Option("--eager/--lazy", help="Connect at start, or when needed.")]
Deferred = Annotated[
    bool | None,
    typer.Option("--deferred/--in-view", help="Models search for its tools, or always have them in view."),
]
AutoReconnect = Annotated[bool | None, typer.Option(help="Try again in the background.")]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
Personal = Annotated[
    list[str] | None,
    typer.Option("--personal", metavar="NAME", help="Each user brings it: auth, env:NAME or header:NAME."),
]
OAuth = Annotated[bool | None, typer.Option("--oauth", help="Each user authorises in a browser.")]
OAuthClient = Annotated[str | None, typer.Option(metavar="ID", help="A client that the issuer knows.")]
OAuthClientSecret = Annotated[
    str | None, typer.Option(metavar="VAR", help="Read that client's secret from this variable now.")
]
OAuthScopes = Annotated[list[str] | None, typer.Option("--oauth-scope", help="A right to ask for.")]
OAuthIssuer = Annotated[str | None, typer.Option(metavar="URL", help="Who authorises, if not found.")]
OAuthClientCredentials = Annotated[
    bool | None, typer.Option("--oauth-client-credentials", help="The client has rights of its own.")
]
Shared = Annotated[bool | None, typer.Option("--shared", help="For the whole workspace; admins only.")]
Connect = Annotated[
    bool, typer.Option("--connect/--no-connect", help="Connect at once to show that it works.")
]


def _facts(
    command: Command,
    url: Url = None,
    transport: Transport = None,
    header: Headers = None,
    bearer: Bearer = None,
    bearer_env: BearerEnv = None,
    api_key: ApiKey = None,
    api_key_env: ApiKeyEnv = None,
    api_key_header: ApiKeyHeader = None,
    basic_env: BasicEnv = None,
    env: Variables = None,
    secret_env: SecretVariables = None,
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


@app.command("add")
def add(
    name: NewName = None,
    command: Command = None,
    url: Url = None,
    openapi: OpenApi = None,
    server: Server = None,
    tag: Tags = None,
    path: Paths = None,
    method: Methods = None,
    include: Included = None,
    exclude: Excluded = None,
    transport: Transport = None,
    header: Headers = None,
    bearer: Bearer = None,
    bearer_env: BearerEnv = None,
    api_key: ApiKey = None,
    api_key_env: ApiKeyEnv = None,
    api_key_header: ApiKeyHeader = None,
    api_key_in: ApiKeyIn = None,
    basic_env: BasicEnv = None,
    env: Variables = None,
    secret_env: SecretVariables = None,
    cwd: Directory = None,
    personal: Personal = None,
    oauth: OAuth = None,
    oauth_client_id: OAuthClient = None,
    oauth_client_secret_env: OAuthClientSecret = None,
    oauth_scope: OAuthScopes = None,
    oauth_issuer: OAuthIssuer = None,
    oauth_client_credentials: OAuthClientCredentials = None,
    isolation: Isolation = None,
    pin: Pin = None,
    connect_timeout: ConnectTimeout = None,
    request_timeout: RequestTimeout = None,
    idle_ttl: IdleTtl = None,
    max_concurrency: Concurrency = None,
    shared_concurrency: AtOnce = None,
    calls_per_minute: PerMinute = None,
    approval: Approval = None,
    cache_ttl: CacheTtl = None,
    eager: Eager = None,
    deferred: Deferred = None,
    auto_reconnect: AutoReconnect = None,
    description: Description = None,
    shared: Shared = None,
    from_registry: FromRegistry = None,
    way: Way = 1,
    inputs: Inputs = None,
    yes: Yes = False,
    connect: Connect = True,
    as_json: AsJson = False,
) -> None:
    """Add a connector and connect once, to show that it works and to learn its tools.

    \b
    dragoman connectors add time -- uvx mcp-server-time
    dragoman connectors add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents
    dragoman connectors add tickets --url https://mcp.example.com/mcp --bearer-env TICKETS_TOKEN
    dragoman connectors add mail --secret-env PASSWORD=… -- python mail_server.py
    dragoman connectors add shop --openapi http://127.0.0.1:8000
    dragoman connectors add --from-registry io.github.owner/server

    A server that cannot be reached now is kept, with its cause, and tried again.
    """
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
    name: Name,
    command: Command = None,
    url: Url = None,
    openapi: OpenApi = None,
    server: Server = None,
    tag: Tags = None,
    path: Paths = None,
    method: Methods = None,
    include: Included = None,
    exclude: Excluded = None,
    transport: Transport = None,
    header: Headers = None,
    bearer: Bearer = None,
    bearer_env: BearerEnv = None,
    api_key: ApiKey = None,
    api_key_env: ApiKeyEnv = None,
    api_key_header: ApiKeyHeader = None,
    api_key_in: ApiKeyIn = None,
    basic_env: BasicEnv = None,
    env: Variables = None,
    secret_env: SecretVariables = None,
    cwd: Directory = None,
    personal: Personal = None,
    oauth: OAuth = None,
    oauth_client_id: OAuthClient = None,
    oauth_client_secret_env: OAuthClientSecret = None,
    oauth_scope: OAuthScopes = None,
    oauth_issuer: OAuthIssuer = None,
    oauth_client_credentials: OAuthClientCredentials = None,
    isolation: Isolation = None,
    pin: Pin = None,
    connect_timeout: ConnectTimeout = None,
    request_timeout: RequestTimeout = None,
    idle_ttl: IdleTtl = None,
    max_concurrency: Concurrency = None,
    shared_concurrency: AtOnce = None,
    calls_per_minute: PerMinute = None,
    approval: Approval = None,
    cache_ttl: CacheTtl = None,
    eager: Eager = None,
    deferred: Deferred = None,
    auto_reconnect: AutoReconnect = None,
    description: Description = None,
    connect: Connect = True,
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
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one connector: how it is reached, how it does, and what its server last wrote to stderr."""
    _act(name, "", as_json)


@app.command("remove")
def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a connector with its tools, secrets and numbers. Calls under way finish."""
    with session(as_json) as (door, screen):
        with screen.busy(f"removing {name} …"):
            door.ask("DELETE", path_of("connectors", name))
        if as_json:
            screen.data({"removed": name})
        else:
            screen.note(f"{name} is removed")


@app.command("enable")
def enable(name: Name, as_json: AsJson = False) -> None:
    """Let its tools be called again."""
    _act(name, "enable", as_json)


@app.command("disable")
def disable(name: Name, as_json: AsJson = False) -> None:
    """Keep the connector, but close its connections and refuse calls."""
    _act(name, "disable", as_json)


@app.command("connect")
def connect_now(name: Name, as_json: AsJson = False) -> None:
    """Connect now and say how that went. Ends with 1 when it did not work."""
    connector = _act(name, "connect", as_json)
    if connector["status"]["state"] != "connected":
        raise typer.Exit(1)


@app.command("disconnect")
def disconnect(name: Name, as_json: AsJson = False) -> None:
    """Close the connection; the next call opens it again."""
    _act(name, "disconnect", as_json)


@app.command("refresh")
def refresh(name: Name, as_json: AsJson = False) -> None:
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
) -> Choice | None:
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
    return Choice(
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
