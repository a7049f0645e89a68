"""`dragoman connectors …`: the sources of tools."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.completion import names_of
from dragoman.cli.discovery import RegistryChoice, add_from_registry
from dragoman.cli.door import Door, Refused, path_of
from dragoman.cli.input_values import Inputs
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, Yes, add_once, card, confirm, is_asked, request, session
from dragoman.cli.setting_options import pairs, with_changes, with_settings
from dragoman.cli.tables import connector_card, connectors_table
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.setting import Described

Name = Annotated[
    str,
    typer.Argument(help="The connector's name.", show_default=False, autocompletion=names_of("connectors")),
]
Command = Annotated[
    list[str] | None, typer.Argument(help="After --: the program that is the server.", show_default=False)
]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
OAuth = Annotated[
    bool, typer.Option("--oauth", help="Each user authorises in a browser.", rich_help_panel="Sign-in")
]
OAuthClientCredentials = Annotated[
    bool,
    typer.Option(
        "--oauth-client-credentials",
        help="The client has rights of its own.",
        rich_help_panel="Sign-in",
    ),
]
Connect = Annotated[
    bool, typer.Option("--connect/--no-connect", help="Connect at once to show that it works.")
]

app = typer.Typer(
    no_args_is_help=True,
    help="Add, look at, change and remove connectors: the servers whose tools Dragoman offers.",
)


def _settings() -> "tuple[Described, ...]":
    from dragoman.connector import Configuration, GivenCredentials
    from dragoman.setting import settings_of

    secrets = (one for one in settings_of(GivenCredentials) if one.setting.secret)
    return (*(one for one in settings_of(Configuration) if not one.setting.derived), *secrets)


_ADD = """Add a connector and connect once, to show that it works and to learn its tools.

\b
dragoman connectors add time -- uvx mcp-server-time
dragoman connectors add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents
dragoman connectors add tickets --url https://mcp.example.com/mcp --bearer-env TICKETS_TOKEN
dragoman connectors add mail --secret-env PASSWORD=… -- python mail_server.py
dragoman connectors add shop --openapi http://127.0.0.1:8000
dragoman connectors add --from-registry io.github.owner/server

A server that cannot be reached now is kept, with its cause, and tried again; the command ends with 1.
"""


@with_settings(app, "add", _settings, help=_ADD)
def add(
    name: Annotated[str | None, typer.Argument(help="The connector's name.", show_default=False)] = None,
    command: Command = None,
    description: Description = None,
    shared: Annotated[bool, typer.Option("--shared", help="For the whole workspace; admins only.")] = False,
    from_registry: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A server that dragoman discover shows.", show_default=False),
    ] = None,
    way: Annotated[
        int, typer.Option(help="Which of its ways, as dragoman discover numbers them.", min=1)
    ] = 1,
    inputs: Inputs = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Add it without asking; what runs is shown all the same.")
    ] = False,
    oauth: OAuth = False,
    oauth_client_credentials: OAuthClientCredentials = False,
    connect: Connect = True,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    facts = _facts(given, command, oauth, oauth_client_credentials, description, connect)
    if shared:
        facts["shared"] = True
    choice = _choice(name, from_registry, way, inputs, yes, facts)
    with session(as_json) as (door, screen):
        if choice:
            return _show_added(screen, add_from_registry(door, screen, choice))
        name = name or ""
        with screen.busy(f"connecting to {name} …", _last_words(door, name)):
            connector, is_new = add_once(door, "connectors", name, facts)
            if not is_new and connect:
                connector = door.ask("POST", path_of("connectors", name, "connect"))
        if not is_new:
            screen.note(f"{name} is there already, as you want it")
        return _show_added(screen, _with_needs(door, screen, connector, yes))


@with_changes(app, "update", _settings)
def update(
    name: Name,
    command: Command = None,
    description: Description = None,
    oauth: OAuth = False,
    oauth_client_credentials: OAuthClientCredentials = False,
    connect: Connect = True,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Change what is given and keep the rest. Calls under way finish on the old connection.

    \b
    dragoman connectors update time --request-timeout 5
    dragoman connectors update time --unset request_timeout,retry.tries
    dragoman connectors update time -- uvx mcp-server-time --local-timezone=Europe/Rome
    dragoman connectors update tickets --bearer-env NEW_TOKEN
    """
    facts = _facts(given, command, oauth, oauth_client_credentials, description, connect)
    with session(as_json) as (door, screen):
        with screen.busy(f"updating {name} …", _last_words(door, name)):
            connector = door.ask("PATCH", path_of("connectors", name), facts)
        _show_added(screen, connector)


@app.command("list")
def list_connectors(as_json: AsJson = False) -> None:
    """List the connectors with their state, the cause of trouble and the next attempt."""
    request(as_json, _show_list, "GET", path_of("connectors"))


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one connector: how it is reached, how it does, and what its server last wrote to stderr."""
    request(as_json, card(connector_card), "GET", path_of("connectors", name))


@app.command("remove")
def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a connector with its tools, secrets and numbers. Calls under way finish."""
    path = path_of("connectors", name)
    with session(as_json) as (door, screen):
        found = door.ask("GET", path)
        confirm(f"Remove {found['slug']} with its {found['tools']} tools, secrets and numbers?", yes, as_json)
        with screen.busy(f"removing {name} …"):
            door.ask("DELETE", path)
        screen.data({"removed": name}) if as_json else screen.note(f"{name} is removed")


@app.command("homes")
def homes(
    name: Name,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all that they hold.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Show the homes of its boxes: what its program keeps, and what npx and uvx fetched for it."""
    path = path_of("connectors", name, "homes")
    with session(as_json) as (door, screen):
        if clear:
            confirm(f"Remove all that the program of {name} keeps?", yes, as_json)
            cleared = door.ask("DELETE", path)
            screen.data(cleared) if as_json else screen.note(f"{cleared['bytes'] // 1024:,} KB are free")
            return
        found = door.ask("GET", path)
        if as_json:
            screen.data(found)
            return
        for home in found["homes"]:
            screen.show(f"{plain(home['path'])} [dim]{home['bytes'] // 1024:,} KB[/]")
        if not found["homes"]:
            screen.note("there is none: its program has not been started in a box on this machine")


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
    path = path_of("connectors", name, "refresh")
    request(as_json, _show_changes, "POST", path, busy=f"listing the tools of {name} …")


def _act(name: str, action: str, as_json: bool) -> dict[str, Any]:
    with session(as_json) as (door, screen):
        with screen.busy(f"{action} {name} …", _last_words(door, name)):
            connector = door.ask("POST", path_of("connectors", name, action))
        screen.data(connector) if as_json else screen.show(connector_card(connector))
        return connector


def _show_list(screen: Screen, answer: dict[str, Any]) -> None:
    # The functions of this process are a connector too, and of no interest while there are none.
    shown = [one for one in answer["connectors"] if one["kind"] != "native" or one["tools"]]
    if shown:
        screen.show(connectors_table(shown))
    else:
        screen.note("there is no connector yet: dragoman connectors add time -- uvx mcp-server-time")


def _last_words(door: Door, name: str) -> Callable[[], str | None]:
    """The last line that the connector's program wrote: an install shows how far it is."""

    def asked() -> str | None:
        try:
            lines = door.ask("GET", path_of("connectors", name))["status"]["stderr"]
        except (Refused, DragomanError):
            return None  # not there yet
        return lines[-1] if lines else None

    return asked


def _with_needs(door: Door, screen: Screen, connector: dict[str, Any], yes: bool) -> dict[str, Any]:
    """The connector with what its program lacks in its box, as far as a person who is asked gives it."""
    given: dict[str, list[str]] = {}
    for need in connector["needs"] if is_asked(yes, screen.as_json) else ():
        if value := _agreed(connector["slug"], need):
            given.setdefault(need["setting"], need["becomes"][:-1]).append(value)
    if not given:
        return connector
    with screen.busy(f"connecting to {connector['slug']} …"):
        return door.ask("PATCH", path_of("connectors", connector["slug"]), given)


def _agreed(slug: str, need: dict[str, str]) -> str | None:
    """Read-only is offered first; who wants it to write says so."""
    path = need["value"].removesuffix(":ro")
    if need["value"] == path:
        is_write = path.endswith(":rw")
        question = f"let it write {path.removesuffix(':rw')}?" if is_write else f"let it reach {path}?"
        return path if typer.confirm(f"{slug} {need['cause']}: {question}", err=True) else None
    question = f"{slug} needs {path}: mount it? (yes: read-only, write: also to write, no)"
    answer: str = typer.prompt(question, default="yes", err=True)
    return {"y": f"{path}:ro", "w": f"{path}:rw"}.get(answer.strip().lower()[:1])


def _show_added(screen: Screen, connector: dict[str, Any]) -> None:
    if screen.as_json:
        screen.data(connector)
    else:
        screen.show(connector_card(connector))
    for notice in connector["notices"]:
        screen.warn(notice)
    status = connector["status"]
    if status["state"] in ("error", "needs_auth", "reconnecting"):
        is_tried = status["state"] != "error" or status["next_attempt"] is not None
        words = "but does not work yet" if is_tried else "and not tried again until something changes"
        screen.warn(f"it is kept, {words}: {status['cause']}")
        if status["hint"]:
            screen.note(status["hint"])
        if not _waits_for_its_users(connector):
            raise typer.Exit(1)
    elif not screen.as_json and connector["tools"]:
        screen.note(f"see what it can do: dragoman tools list {connector['slug']}")


def _waits_for_its_users(connector: dict[str, Any]) -> bool:
    """Whether all that it lacks is what each user brings: then adding it has worked."""
    auth = connector["configuration"]["auth"]
    asks = connector["configuration"]["personal"] or (auth["kind"], auth["flow"]) == ("oauth", "code")
    return connector["status"]["state"] == "needs_auth" and bool(asks)


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


def _facts(
    given: dict[str, Any],
    command: list[str] | None,
    oauth: bool,
    by_client: bool,
    description: str | None,
    connect: bool,
) -> dict[str, Any]:
    """The options as the REST door wants them: only what was given."""
    facts: dict[str, Any] = {**given, "connect": connect}
    if command:
        facts |= {"command": command[0], "args": command[1:]}
    if oauth or by_client:
        flow = {"flow": "client_credentials"} if by_client else {}
        facts["auth"] = {"kind": "oauth", **flow, **(facts.get("auth") or {})}
    return facts if description is None else {**facts, "description": description}


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
    described = [field for field in ("command", "url", "openapi") if given.get(field)]
    if described:
        raise typer.BadParameter(f"the registry says the {described[0]}", param_hint="--from-registry")
    if given.get("shared"):
        raise typer.BadParameter("what a registry offers is added for yourself", param_hint="--shared")
    return RegistryChoice(
        offered=offered,
        name=name,
        way=way,
        inputs=pairs("--input", inputs or []),
        is_agreed=yes,
        connect=given["connect"],
    )
