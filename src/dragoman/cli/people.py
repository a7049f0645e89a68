"""`dragoman workspaces …`, `dragoman users …`, `dragoman keys …`, `dragoman whoami`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.people_tables import keys_table, me_card, users_table, workspaces_table
from dragoman.cli.session import AsJson, session
from dragoman.cli.setting_options import Unset, with_settings, without

if TYPE_CHECKING:
    from dragoman.setting import Described

workspaces = typer.Typer(no_args_is_help=True, help="Tenants: nothing crosses their border.")
users = typer.Typer(no_args_is_help=True, help="People and services inside a workspace.")
keys = typer.Typer(no_args_is_help=True, help="API keys: how users and programs come in.")

Workspace = Annotated[str, typer.Argument(help="Its name or id.", show_default=False)]
User = Annotated[str, typer.Argument(help="Their name or id.", show_default=False)]
Key = Annotated[str, typer.Argument(help="Its id, as keys list shows it.", show_default=False)]
Where = Annotated[
    str | None, typer.Option("--workspace", "-w", help="Name or id; yours unless you run the service.")
]


def _settings_of(noun: str) -> "Callable[[], tuple[Described, ...]]":
    """Of a class in `dragoman.people`, once they are needed."""

    def described() -> "tuple[Described, ...]":
        from dragoman import people
        from dragoman.setting import people_set

        return people_set(getattr(people, noun))

    return described


_OF_WORKSPACE, _OF_USER, _OF_KEY = map(_settings_of, ("Workspace", "User", "ApiKey"))


def whoami(as_json: AsJson = False) -> None:
    """Show who you are to Dragoman: user, workspace, role, scopes, limits.

    \b
    dragoman whoami
    DRAGOMAN_URL=http://tools.example.com DRAGOMAN_TOKEN=drk_… dragoman whoami
    """
    with session(as_json) as (door, screen):
        me = door.ask("GET", path_of("me"))
        screen.data(me) if as_json else screen.show(me_card(me))


# Workspaces


@workspaces.command("list")
def list_workspaces(as_json: AsJson = False) -> None:
    """List the workspaces: all for who runs the service, their own for an admin."""
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("workspaces"))
        screen.data(answer) if as_json else screen.show(workspaces_table(answer["workspaces"]))


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
        made = door.ask("POST", path_of("workspaces"), {"name": name})
        if as_json:
            return screen.data(made)
        screen.show(workspaces_table([made]))
        return screen.note(f"next: dragoman users add NAME --workspace {made['name']} --role admin")


@workspaces.command("show")
def show_workspace(workspace: Workspace, as_json: AsJson = False) -> None:
    """Show a workspace."""
    with session(as_json) as (door, screen):
        found = door.ask("GET", path_of("workspaces", workspace))
        screen.data(found) if as_json else screen.show(workspaces_table([found]))


@with_settings(workspaces, "update", _OF_WORKSPACE)
def update_workspace(
    workspace: Workspace,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    unset: Unset = None,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Change a workspace: its approval policy, and the limits of each of its users.

    \b
    dragoman workspaces update acme --approval always
    dragoman workspaces update acme --limit calls_per_hour=500 --limit cost_per_day=2.5
    """
    changes = without({**_given(name=name), **given}, unset, _OF_WORKSPACE())
    with session(as_json) as (door, screen):
        after = door.ask("PATCH", path_of("workspaces", workspace), changes)
        screen.data(after) if as_json else screen.show(workspaces_table([after]))


@workspaces.command("remove")
def remove_workspace(workspace: Workspace, as_json: AsJson = False) -> None:
    """Remove a workspace with its users, connectors and credentials. Calls under way finish."""
    with session(as_json) as (door, screen):
        door.ask("DELETE", path_of("workspaces", workspace))
        if as_json:
            screen.data({"removed": workspace})
        else:
            screen.note(f"the workspace {workspace} is gone; its audit trail stays")


# Users


@users.command("list")
def list_users(workspace: Where = None, as_json: AsJson = False) -> None:
    """List the users of the workspace."""
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("users"), workspace=workspace)
        screen.data(answer) if as_json else screen.show(users_table(answer["users"]))


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
    new = {**_given(name=name, workspace=workspace), **given}
    with session(as_json) as (door, screen):
        made = door.ask("POST", path_of("users"), new)
        if as_json:
            return screen.data(made)
        screen.show(users_table([made]))
        there = f" --workspace {workspace}" if workspace else ""
        return screen.note(f"next: dragoman keys add NAME --user {made['name']}{there}")


@users.command("show")
def show_user(user: User, workspace: Where = None, as_json: AsJson = False) -> None:
    """Show a user."""
    with session(as_json) as (door, screen):
        found = door.ask("GET", path_of("users", user), workspace=workspace)
        screen.data(found) if as_json else screen.show(users_table([found]))


@with_settings(users, "update", _OF_USER)
def update_user(
    user: User,
    unset: Unset = None,
    workspace: Where = None,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Change a user; effective at once. --capability replaces all that they had.

    \b
    dragoman users update ada --role admin
    dragoman users update bot --inactive
    """
    changes = without(given, unset, _OF_USER())
    with session(as_json) as (door, screen):
        after = door.ask("PATCH", path_of("users", user), changes, workspace=workspace)
        screen.data(after) if as_json else screen.show(users_table([after]))


@users.command("remove")
def remove_user(user: User, workspace: Where = None, as_json: AsJson = False) -> None:
    """Remove a user. Their keys end at once, calls under way finish, then all that is theirs goes."""
    with session(as_json) as (door, screen):
        door.ask("DELETE", path_of("users", user), workspace=workspace)
        if as_json:
            return screen.data({"removed": user})
        screen.note(f"{user} is gone, with their keys, connectors, credentials and threads")
        return screen.note(
            "an outside issuer that still knows them brings them back: users update --inactive"
        )


# Keys


@keys.command("list")
def list_keys(
    user: Annotated[str | None, typer.Option(help="Only of this user: name or id.")] = None,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """List your keys; for an admin, all of the workspace."""
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("keys"), user=user, workspace=workspace)
        if as_json:
            screen.data(answer)
        elif answer["keys"]:
            screen.show(keys_table(answer["keys"]))
        else:
            screen.note("there is no key yet: dragoman keys add NAME")


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
    new = {**_given(name=name, user=user, workspace=workspace), **given}
    with session(as_json) as (door, screen):
        made = door.ask("POST", path_of("keys"), new)
        if as_json:
            return screen.data(made)
        print(made["key"])
        until = f" until {made['expires_at']}" if made["expires_at"] else ""
        screen.note(f"{made['id']}: a key with the scopes {', '.join(made['scopes'])}{until}")
        return screen.note(f"keep it: nobody can tell it again. To end it: dragoman keys revoke {made['id']}")


@with_settings(keys, "update", _OF_KEY)
def update_key(
    key: Key,
    unset: Unset = None,
    workspace: Where = None,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Change a key; effective at once. It never gets more than the one has that you use yourself.

    \b
    dragoman keys update key_1f… --scope read --expires 30d
    dragoman keys update key_1f… --unset capabilities
    """
    changes = without(given, unset, _OF_KEY())
    if not changes:
        raise typer.BadParameter("say what to change", param_hint="--scope, --capability …")
    with session(as_json) as (door, screen):
        after = door.ask("PATCH", path_of("keys", key), changes, workspace=workspace)
        screen.data(after) if as_json else screen.show(keys_table([after]))


@keys.command("revoke")
def revoke_key(
    key: Key,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """End a key: nobody comes in with it from now on."""
    with session(as_json) as (door, screen):
        ended = door.ask("DELETE", path_of("keys", key), workspace=workspace)
        screen.data(ended) if as_json else screen.show(keys_table([ended]))


def _given(**facts: Any) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
