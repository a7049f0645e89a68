"""`dragoman credentials …`"""

import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.connectors import Name
from dragoman.cli.door import Door, Refused, path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, Yes, note, request, request_removal, rows, session
from dragoman.cli.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    no_args_is_help=True, help="Your secrets for connectors: set, authorise, remove, rotate the key."
)

_COLOURS = {"ready": "green", "missing": "magenta", "expired": "yellow", "refused": "red"}
_POLL = 0.5


@app.command("list")
def list_credentials(as_json: AsJson = False) -> None:
    """List what connectors want of you, and what of it is there. Values are never shown."""
    show = rows(_table, "credentials", "no connector wants anything of you")
    request(as_json, show, "GET", path_of("credentials"))


@app.command("set")
def set_credential(
    name: Name,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="auth, env:NAME or header:NAME; else all it wants.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give a connector what it wants of you. Values are asked for, or read from stdin, one line each.

    \b
    dragoman credentials set github auth
    dragoman credentials set mail env:PASSWORD < password.txt
    """
    with session(as_json) as (door, screen):
        wanted = names or door.ask("GET", path_of("credentials", name))["wanted"] or ["auth"]
        if wanted == ["oauth"]:
            raise Refused(
                {
                    "code": "invalid_config",
                    "detail": f"{name} takes an authorisation, not a value",
                    "hint": f"dragoman credentials authorize {name}",
                }
            )
        values = _values([one for one in wanted if one != "oauth"])
        with screen.busy(f"connecting to {name} …"):
            answer = door.ask("PUT", path_of("credentials", name), {"values": values})
        if as_json:
            return screen.data(answer)
        if answer["state"] == "ready":
            return screen.note(f"{name} has what it wants of you")
        return screen.warn(f"{name}: {answer['state']}; {answer['hint']}")


@app.command("remove")
def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove what you gave a connector. Only your own connection is closed."""
    show, busy = note(f"{name} has nothing of yours any more"), f"removing your credentials for {name} …"
    question = f"Remove what you gave {name}?"
    request_removal(as_json, show, path_of("credentials", name), question, yes, busy=busy, name=name)


@app.command("authorize")
def authorize(
    name: Name,
    open_it: Annotated[bool, typer.Option("--open", help="Open the link in a browser.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done.")] = True,
    as_json: AsJson = False,
) -> None:
    """Connect your account at a server that uses OAuth: prints a link and waits until it is done."""
    with session(as_json) as (door, screen):
        before = door.ask("GET", path_of("credentials", name))["authorised_at"]
        with screen.busy(f"asking who authorises for {name} …"):
            link = door.ask("POST", path_of("credentials", name, "authorize"))
        if as_json and not wait:
            return screen.data(link)
        if as_json:
            print(link["url"], file=sys.stderr)
        else:
            screen.text(link["url"])
        if open_it:
            typer.launch(link["url"])
        if not wait:
            return None
        with screen.busy("waiting for you in the browser … Ctrl-C ends the wait, not the link"):
            answer = _awaited(door, name, before, link["expires_at"])
        if as_json:
            return screen.data(answer)
        return screen.note(f"{name} is connected")


@app.command("rotate")
def rotate(
    forget_old: Annotated[
        bool, typer.Option("--forget-old", help="Make no new key; delete the replaced ones for good.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Seal every secret with a new master key. One that was interrupted is finished.

    The old key stays beside the new one: backups need it, and so do questions that are open right now.
    """

    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        if forget_old:
            return screen.note(f"{len(answer['forgotten'])} old keys are forgotten")
        screen.note(f"{answer['resealed']} secrets are sealed with the key {answer['key_id']}")
        kept = ", ".join(answer["older"])
        hint = "once none needs them: dragoman credentials rotate --forget-old"
        return screen.note(f"kept for backups: {kept}; {hint}") if kept else None

    path, busy = path_of("credentials", "rotate"), "sealing every secret anew …"
    request(as_json, show, "POST", path, {"forget_old": forget_old}, busy=busy)


def _values(names: list[str]) -> dict[str, str]:
    """Typed without being shown, or a line of stdin each: an argument would be in the list of processes."""
    if sys.stdin.isatty():
        return {name: typer.prompt(name, hide_input=True, err=True) for name in names}
    lines = [line.rstrip("\r\n") for line in sys.stdin.readlines()]
    if len(lines) < len(names):
        raise typer.BadParameter(f"stdin must hold {len(names)} lines: {', '.join(names)}")
    return dict(zip(names, lines, strict=False))


def _awaited(door: Door, name: str, before: str | None, until: str) -> Mapping[str, Any]:
    from datetime import UTC, datetime

    while datetime.now(UTC) < datetime.fromisoformat(until):
        answer = door.ask("GET", path_of("credentials", name))
        if answer["authorised_at"] not in (None, before):
            return answer
        time.sleep(_POLL)
    raise Refused(
        {
            "code": "needs_auth",
            "detail": "nobody came back in time",
            "hint": f"begin again: dragoman credentials authorize {name}",
        }
    )


def _table(credentials: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("connector", "state", "wants of you", "has", "expires", "what to do")
    for one in credentials:
        colour = _COLOURS.get(one["state"], "white")
        table.add_row(
            f"[bold]{plain(one['connector'])}[/]",
            f"[{colour}]●[/] [{colour}]{one['state']}[/]",
            plain(", ".join(one["wanted"])),
            plain(", ".join(one["present"])),
            ago(one["expires_at"]),
            plain(one["hint"] or ""),
        )
    return table
