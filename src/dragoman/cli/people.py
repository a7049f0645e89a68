"""`dragoman workspaces …`, `dragoman users …`, `dragoman keys …`, `dragoman whoami`."""

import re
from typing import Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.people_tables import keys_table, me_card, users_table, workspaces_table
from dragoman.cli.session import AsJson, session
from dragoman.cli.setting_options import Unset, without

workspaces = typer.Typer(no_args_is_help=True, help="Tenants: nothing crosses their border.")
users = typer.Typer(no_args_is_help=True, help="People and services inside a workspace.")
keys = typer.Typer(no_args_is_help=True, help="API keys: how users and programs come in.")

Workspace = Annotated[str, typer.Argument(help="Its name or id.", show_default=False)]
User = Annotated[str, typer.Argument(help="Their name or id.", show_default=False)]
Where = Annotated[
    str | None, typer.Option("--workspace", "-w", help="Name or id; yours unless you run the service.")
]
Role = Annotated[str | None, typer.Option(help="member or admin.")]
Capabilities = Annotated[
    list[str] | None,
    typer.Option(
        "--capability", help="mcp_integration, mcp_<connector> or a tool's name; can be given more than once."
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        "--bound",
        metavar="NAME=NUMBER",
        help="calls_per_hour, tokens_per_day, cost_per_day, calls_per_minute, max_concurrency or"
        " max_connectors_per_thread; an empty number takes it away.",
    ),
]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


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


@workspaces.command("update")
def update_workspace(
    workspace: Workspace,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    approval: Annotated[str | None, typer.Option(help="never, default or always.")] = None,
    limit: Limits = None,
    unset: Unset = None,
    as_json: AsJson = False,
) -> None:
    """Change a workspace: its approval policy, and the limits of each of its users.

    \b
    dragoman workspaces update acme --approval always
    dragoman workspaces update acme --limit calls_per_hour=500 --limit cost_per_day=2.5
    """
    changes = _unset(_given(name=name, approval=approval, limits=_limits(limit)), unset, "Workspace")
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


@users.command("add")
def add_user(
    name: Annotated[str, typer.Argument(help="What people call them.", show_default=False)],
    role: Role = None,
    capability: Capabilities = None,
    limit: Limits = None,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """Add a user. They come in with an API key: dragoman keys add.

    \b
    dragoman users add ada --role admin
    dragoman users add bot --capability mcp_email --limit calls_per_hour=100
    """
    new = _given(name=name, role=role, capabilities=capability, limits=_limits(limit), workspace=workspace)
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


@users.command("update")
def update_user(
    user: User,
    role: Role = None,
    capability: Capabilities = None,
    limit: Limits = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="Let in, or keep out.")] = None,
    unset: Unset = None,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """Change a user; effective at once. --capability replaces all that they had.

    \b
    dragoman users update ada --role admin
    dragoman users update bot --inactive
    """
    given = _given(role=role, capabilities=capability, limits=_limits(limit), is_active=active)
    changes = _unset(given, unset, "User")
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


@keys.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="What it is for.", show_default=False)],
    user: Annotated[str | None, typer.Option(help="Whose: name or id. Yours unless you say.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, call, manage, approve, admin; can be given more than once. [read, call]"),
    ] = None,
    capability: Capabilities = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="As 12h, 30d or 8w; never unless you say.")
    ] = None,
    way: Annotated[
        str | None, typer.Option(help="direct, agent or mcp: the last two act for a model. [direct]")
    ] = None,
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """Make an API key. It is printed once, alone on stdout, and never again.

    \b
    dragoman keys add laptop
    dragoman keys add cursor --way mcp --expires 30d
    export DRAGOMAN_TOKEN=$(dragoman keys add ci --user bot --scope call)
    """
    new = _given(
        name=name,
        user=user,
        scopes=scope,
        capabilities=capability,
        expires_in=_seconds(expires),
        way=way,
        workspace=workspace,
    )
    with session(as_json) as (door, screen):
        made = door.ask("POST", path_of("keys"), new)
        if as_json:
            return screen.data(made)
        print(made["key"])
        until = f" until {made['expires_at']}" if made["expires_at"] else ""
        screen.note(f"{made['id']}: a key with the scopes {', '.join(made['scopes'])}{until}")
        return screen.note(f"keep it: nobody can tell it again. To end it: dragoman keys revoke {made['id']}")


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="Its id, as keys list shows it.", show_default=False)],
    workspace: Where = None,
    as_json: AsJson = False,
) -> None:
    """End a key: nobody comes in with it from now on."""
    with session(as_json) as (door, screen):
        ended = door.ask("DELETE", path_of("keys", key), workspace=workspace)
        screen.data(ended) if as_json else screen.show(keys_table([ended]))


def _given(**facts: Any) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _unset(facts: dict[str, Any], names: list[str] | None, noun: str) -> dict[str, Any]:
    """The facts, with null for what goes back to its default."""
    if not names:
        return facts
    from dragoman import people
    from dragoman.setting import settings_of

    return without(facts, names, settings_of(getattr(people, noun)))


def _limits(words: list[str] | None) -> dict[str, float | None] | None:
    if words is None:
        return None
    limits: dict[str, float | None] = {}
    for word in words:
        name, sign, number = word.partition("=")
        try:
            value = float(number) if number else None
        except ValueError:
            sign = ""
            value = None
        if not sign or not name:
            raise typer.BadParameter(f"{word!r} is not NAME=NUMBER", param_hint="--limit")
        limits[name.replace("-", "_")] = int(value) if value is not None and value.is_integer() else value
    return limits


def _seconds(time: str | None) -> int | None:
    if time is None:
        return None
    match = re.fullmatch(r"(\d{1,9})([smhdw])", time.strip().lower())
    if match is None:
        raise typer.BadParameter("give it as 30m, 12h, 30d or 8w", param_hint="--expires")
    return int(match[1]) * _UNITS[match[2]]
