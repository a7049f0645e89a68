"""`dragoman workspaces …`, `dragoman users …`, `dragoman keys …`, `dragoman clients …`, `dragoman whoami`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.people_tables import (
    client_card,
    clients_table,
    keys_table,
    me_card,
    users_table,
    workspaces_table,
)
from dragoman.cli.screen import Screen
from dragoman.cli.session import (
    AsJson,
    Show,
    Yes,
    add_once,
    card,
    confirm,
    note,
    request,
    request_removal,
    rows,
    session,
)
from dragoman.cli.setting_options import any_of, settings_of, with_changes, with_settings
from dragoman.private_files import overwrite_private

workspaces = typer.Typer(no_args_is_help=True, help="Tenants: nothing crosses their border.")
users = typer.Typer(no_args_is_help=True, help="People and services inside a workspace.")
clients = typer.Typer(no_args_is_help=True, help="MCP clients that log in by URL, and what they may use.")
keys = typer.Typer(no_args_is_help=True, help="API keys: how users and programs come in.")

Workspace = Annotated[str, typer.Argument(help="Its name or id.", show_default=False)]
User = Annotated[str, typer.Argument(help="Their name or id.", show_default=False)]
Key = Annotated[str, typer.Argument(help="Its id, as keys list shows it.", show_default=False)]
Client = Annotated[str, typer.Argument(help="Its id, as clients list shows it.", show_default=False)]
Where = Annotated[
    str | None, typer.Option("--workspace", "-w", help="Name or id; yours unless you run the service.")
]


_OF_WORKSPACE, _OF_USER, _OF_KEY = (settings_of("people", noun) for noun in ("Workspace", "User", "ApiKey"))
_OF_CLIENT = settings_of("people", "ApiKey", "limits")


def whoami(as_json: AsJson = False) -> None:
    """Show who you are to Dragoman: user, workspace, role, scopes, limits.

    \b
    dragoman whoami
    DRAGOMAN_URL=http://tools.example.com DRAGOMAN_TOKEN=drk_… dragoman whoami
    """
    request(as_json, card(me_card), "GET", path_of("me"))


# Workspaces


@workspaces.command("list")
def list_workspaces(as_json: AsJson = False) -> None:
    """List the workspaces: all for who runs the service, their own for an admin."""
    request(as_json, rows(workspaces_table, "workspaces"), "GET", path_of("workspaces"))


@workspaces.command("add")
def add_workspace(
    name: Annotated[str, typer.Argument(help="What people call it.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Add a workspace. Only who runs the service may.

    \b
    dragoman workspaces add acme
    dragoman users add ada --workspace acme --role admin
    """

    with session(as_json) as (door, screen):
        made, is_new = add_once(door, "workspaces", name, {})
        _show_added(screen, made, is_new, workspaces_table)
        if not as_json:
            screen.note(f"next: dragoman users add NAME --workspace {made['name']} --role admin")


@workspaces.command("show")
def show_workspace(workspace: Workspace, as_json: AsJson = False) -> None:
    """Show a workspace."""
    request(as_json, _one(workspaces_table), "GET", path_of("workspaces", workspace))


@with_changes(workspaces, "update", _OF_WORKSPACE)
def update_workspace(
    workspace: Workspace,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Change a workspace: its approval policy, and the limits of each of its users.

    \b
    dragoman workspaces update acme --approval always
    dragoman workspaces update acme --limit calls_per_hour=500 --limit cost_per_day=2.5
    """
    changes = {**_given(name=name), **given}
    request(as_json, _one(workspaces_table), "PATCH", path_of("workspaces", workspace), changes)


@workspaces.command("remove")
def remove_workspace(workspace: Workspace, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a workspace with its users, connectors and credentials. Calls under way finish."""
    said = note(f"the workspace {workspace} is gone; its audit trail stays")
    question = f"Remove the workspace {workspace} with its users, connectors and credentials?"
    request_removal(as_json, said, path_of("workspaces", workspace), question, yes, name=workspace)


# Users


@users.command("list")
def list_users(workspace: Where = None, as_json: AsJson = False) -> None:
    """List the users of the workspace."""
    request(as_json, rows(users_table, "users"), "GET", path_of("users"), workspace=workspace)


@with_settings(users, "add", _OF_USER)
def add_user(
    name: Annotated[str, typer.Argument(help="What people call them.", show_default=False)],
    workspace: Where = None,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Add a user. They come in with an API key: dragoman keys add.

    \b
    dragoman users add ada --role admin
    dragoman users add bot --capability mcp_email --limit calls_per_hour=100
    """

    with session(as_json) as (door, screen):
        made, is_new = add_once(door, "users", name, given, **_given(workspace=workspace))
        _show_added(screen, made, is_new, users_table)
        if not as_json:
            there = f" --workspace {workspace}" if workspace else ""
            screen.note(f"next: dragoman keys add NAME --user {made['name']}{there}")


@users.command("show")
def show_user(user: User, workspace: Where = None, as_json: AsJson = False) -> None:
    """Show a user."""
    request(as_json, _one(users_table), "GET", path_of("users", user), workspace=workspace)


@with_changes(users, "update", _OF_USER)
def update_user(
    user: User, workspace: Where = None, as_json: AsJson = False, *, given: dict[str, Any]
) -> None:
    """Change a user; effective at once. --capability replaces all that they had.

    \b
    dragoman users update ada --role admin
    dragoman users update bot --inactive
    """
    request(as_json, _one(users_table), "PATCH", path_of("users", user), given, workspace=workspace)


@users.command("remove")
def remove_user(user: User, workspace: Where = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a user. Their keys end at once, calls under way finish, then all that is theirs goes."""

    def show(screen: Screen, _: Any) -> None:
        screen.note(f"{user} is gone, with their keys, connectors, credentials and threads")
        screen.note("an outside issuer that still knows them brings them back: users update --inactive")

    question = f"Remove {user} with their keys, connectors, credentials and threads?"
    path = path_of("users", user)
    request_removal(as_json, show, path, question, yes, name=user, workspace=workspace)


@users.command("export")
def export_user(
    user: Annotated[
        str | None, typer.Argument(help="Their name or id; yourself if left out.", show_default=False)
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file, in place of stdout.")] = None,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write all that is kept of a user as JSON: threads, runs, calls, results, keys, the audit trail.

    \b
    dragoman users export ada -o ada.json
    dragoman users export > me.json

    Values of secrets are not in it. The file is for its owner alone.
    """
    with session(as_json) as (door, screen):
        path = path_of("me", "export") if user is None else path_of("users", user, "export")
        body = door.fetch(path, workspace=None if user is None else workspace).body
        if output is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(body + b"\n")
            return
        overwrite_private(output, body)
        screen.data({"written": str(output)}) if as_json else screen.note(f"written to {output}")


@users.command("erase")
def erase_user(user: User, workspace: Where = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a user with all that is theirs, and their name from the audit trail, for good.

    \b
    dragoman users export ada -o ada.json
    dragoman users erase ada

    The trail keeps what was done, by a pseudonym that nobody can trace; it can still be verified. Backups
    and logs keep what they have. Who was removed before can be erased, too.
    """
    with session(as_json) as (door, screen):
        confirm(f"Erase {user} with everything that is theirs? It cannot be taken back.", yes, as_json)
        with screen.busy(f"erasing {user} …"):
            done = door.ask("POST", path_of("users", user, "erase"), workspace=workspace)
        if as_json:
            return screen.data(done)
        screen.note(
            f"{user} is gone; {done['entries']} entries of the audit trail are {done['pseudonym']}'s now"
        )
        if not done["is_compact"]:
            screen.warn("somebody reads the database for long: its files may hold deleted rows for a while")
        return None


# Keys


@keys.command("list")
def list_keys(
    user: Annotated[str | None, typer.Option(help="Only of this user: name or id.")] = None,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """List your keys; for an admin, all of the workspace."""
    shown = rows(keys_table, "keys", none="there is no key yet: dragoman keys add NAME")
    request(as_json, shown, "GET", path_of("keys"), user=user, workspace=workspace)


@with_settings(keys, "add", _OF_KEY)
def add_key(
    name: Annotated[str, typer.Argument(help="What it is for.", show_default=False)],
    user: Annotated[str | None, typer.Option(help="Whose: name or id. Yours unless you say.")] = None,
    workspace: Where = None,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Make an API key. It is printed once, alone on stdout, and never again.

    \b
    dragoman keys add laptop
    dragoman keys add cursor --way mcp --expires 30d
    export DRAGOMAN_TOKEN=$(dragoman keys add ci --user bot --scope call)
    """

    def show(screen: Screen, made: Any) -> None:
        print(made["key"])
        until = f" until {made['expires_at']}" if made["expires_at"] else ""
        screen.note(f"{made['id']}: a key with the scopes {', '.join(made['scopes'])}{until}")
        screen.note(f"keep it: nobody can tell it again. To end it: dragoman keys revoke {made['id']}")

    new = {**_given(name=name, user=user, workspace=workspace), **given}
    request(as_json, show, "POST", path_of("keys"), new)


@with_changes(keys, "update", _OF_KEY)
def update_key(key: Key, workspace: Where = None, as_json: AsJson = False, *, given: dict[str, Any]) -> None:
    """Change a key; effective at once. It never gets more than the one has that you use yourself.

    \b
    dragoman keys update key_1f… --scope read --expires 30d
    dragoman keys update key_1f… --unset capabilities
    """
    request(as_json, _one(keys_table), "PATCH", path_of("keys", key), any_of(given), workspace=workspace)


@keys.command("revoke")
def revoke_key(key: Key, workspace: Where = None, as_json: AsJson = False) -> None:
    """End a key: nobody comes in with it from now on."""
    request(as_json, _one(keys_table), "DELETE", path_of("keys", key), workspace=workspace)


# Clients


@clients.command("list")
def list_clients(
    user: Annotated[str | None, typer.Option(help="Only of this user: name or id.")] = None,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """List the MCP clients that you let use your tools; for an admin, all of the workspace."""
    none = "no client is connected: paste the address of /mcp into one"
    shown = rows(clients_table, "clients", none=none)
    request(as_json, shown, "GET", path_of("clients"), user=user, workspace=workspace)


@clients.command("show")
def show_client(client: Client, workspace: Where = None, as_json: AsJson = False) -> None:
    """Show who a client is, and what it may use until when."""
    request(as_json, card(client_card), "GET", path_of("clients", client), workspace=workspace)


@with_changes(clients, "update", _OF_CLIENT)
def update_client(
    client: Client, workspace: Where = None, as_json: AsJson = False, *, given: dict[str, Any]
) -> None:
    """Set what may be used through a client; effective at once.

    \b
    dragoman clients update cli_1f… --limit calls_per_hour=100
    dragoman clients update cli_1f… --limit calls_per_hour=
    """
    path = path_of("clients", client)
    request(as_json, card(client_card), "PATCH", path, any_of(given), workspace=workspace)


@clients.command("rotate")
def rotate_signing_key(as_json: AsJson = False) -> None:
    """Sign access tokens with a new key. It happens by itself every 30 days; nobody has to log in anew."""

    def show(screen: Screen, made: Any) -> None:
        screen.note(f"{made['key']} signs from now on; what was signed before is good until it ends")

    request(as_json, show, "POST", path_of("clients", "rotate"))


@clients.command("revoke")
def revoke_client(client: Client, workspace: Where = None, as_json: AsJson = False) -> None:
    """Shut a client out, at once. It has to ask you again."""
    request(as_json, _one(clients_table), "DELETE", path_of("clients", client), workspace=workspace)


def _show_added(screen: Screen, made: Any, is_new: bool, table: Callable[[Any], Any]) -> None:
    screen.data(made) if screen.as_json else screen.show(table([made]))
    if not is_new:
        screen.note(f"{made['name']} is there already, as you want it")


def _one(table: Callable[[Any], Any]) -> Show:
    """One of them, as a table of one row."""
    return card(lambda answer: table([answer]))


def _given(**facts: Any) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
