"""`dragoman connect`: makes an MCP client use this home, by printing or writing its configuration."""

import os
import shutil
import sys
from typing import Annotated, Any, Literal

import typer

from dragoman.cli import client_files
from dragoman.cli.door import RunningService, find_service, open_door, path_of
from dragoman.cli.mcp_clients import ClientProgram, clients
from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, failures_on
from dragoman.cli.stdio import ViewName, address
from dragoman.errors import InvalidConfig
from dragoman.settings import Settings

ClientName = Literal["claude", "claude-desktop", "cursor", "vscode", "codex"]


def connect(
    client: Annotated[ClientName, typer.Argument(help="The client that shall use this home.")],
    write: Annotated[
        bool, typer.Option("--write", help="Write it into the client's file; what is there stays.")
    ] = False,
    http: Annotated[
        bool, typer.Option("--http", help="By address and key, to the running service, instead of a program.")
    ] = False,
    key: Annotated[
        bool, typer.Option("--key", help="Make an API key for this client alone; it may read and call.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the key that the configuration holds.")] = False,
    view: Annotated[ViewName | None, typer.Option(help="All tools, or a few that lead to them.")] = None,
    connector: Annotated[str | None, typer.Option(help="This connector alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let Claude, Cursor, VS Code or Codex use the tools of this home.

    \b
    dragoman connect claude                  print what to paste
    dragoman connect claude --write          write it into the client's own file
    dragoman connect cursor --http --write   by address, with a key of its own

    By itself a client starts `dragoman stdio`, which needs no key: it reads this home. With --http the
    configuration holds a secret, which is printed only with --show.
    """
    screen = Screen(as_json)
    with failures_on(screen):
        settings, chosen = Settings.load(), clients()[client]
        path = address(view, connector)
        if http and not chosen.speaks_http:
            raise InvalidConfig(
                f"the file of {chosen.title} takes no address", hint="leave out --http: it starts a program"
            )
        # A service elsewhere lets nobody in by the token of this home.
        needs_key = http or key or "DRAGOMAN_URL" in os.environ
        if needs_key and not (write or show):
            raise InvalidConfig(
                "this configuration holds a secret",
                hint="--write puts it into the client's file; --show prints it",
            )
        service = find_service(settings)
        token = new_key(settings, chosen) if needs_key else None
        if http:
            entry = chosen.address(_url(settings, service) + path, token or "")
        else:
            entry = program_entry(settings, chosen, view, connector, token)
        _tell(screen, chosen, entry, write=write, shows=show or token is None)
        if http and service is None:
            screen.warn("no service is running; start it: dragoman serve")


def program_entry(
    settings: Settings,
    client: ClientProgram,
    view: str | None = None,
    connector: str | None = None,
    token: str | None = None,
) -> dict[str, Any]:
    """The command by its full path: a client on the desktop does not know the shell's."""
    words = ["stdio", *(["--view", view] if view else []), *(["--connector", connector] if connector else [])]
    environment = {"DRAGOMAN_HOME": str(settings.home.absolute())}
    if url := os.environ.get("DRAGOMAN_URL"):
        environment["DRAGOMAN_URL"] = url
    if token:
        environment["DRAGOMAN_TOKEN"] = token
    command = shutil.which("dragoman") or shutil.which(
        os.path.join(os.path.dirname(sys.executable), "dragoman")
    )
    if command is None:
        return client.program(sys.executable, ["-m", "dragoman", *words], environment)
    return client.program(os.path.abspath(command), words, environment)


def _url(settings: Settings, service: RunningService | None) -> str:
    if settings.public_url:
        return settings.public_url.rstrip("/")
    return service.url if service else f"http://{settings.host}:{settings.port}"


def new_key(settings: Settings, client: ClientProgram) -> str:
    """A key of its own for the client; it may read and call."""
    wish = {"name": f"{client.title} (dragoman connect)", "scopes": ["read", "call"], "way": "mcp"}
    with open_door(settings) as door:
        return str(door.ask("POST", path_of("keys"), wish)["key"])


def _tell(screen: Screen, client: ClientProgram, entry: dict[str, Any], *, write: bool, shows: bool) -> None:
    text = client_files.fragment(client, entry)
    changed = backup = None
    if write:
        before = client_files.read(client.file)
        after = client_files.merged(client, before, entry)
        changed = client_files.differences(client.file, before, after)
        backup = client_files.write(client.file, before, after) if after != before else None
    if screen.as_json:
        facts = {"client": client.name, "file": str(client.file), "written": write}
        facts |= {"backup": str(backup) if backup else None, "configuration": entry if shows else None}
        screen.data(facts)
        return
    if not write:
        screen.note(f"for {client.file}:")
        screen.text(text)
        return
    if changed:
        screen.text(changed if shows else _hidden(changed, entry))
    screen.note(f"{client.file} is written" + (f"; what it was is in {backup}" if backup else ""))
    screen.note(client.after)


def _hidden(text: str, entry: dict[str, Any]) -> str:
    for secret in _secrets(entry):
        text = text.replace(secret, "…")
    return text


def _secrets(entry: dict[str, Any]) -> list[str]:
    headers: dict[str, str] = entry.get("headers") or entry.get("http_headers") or {}
    found = [
        str(headers.get("Authorization", "")).removeprefix("Bearer "),
        entry.get("env", {}).get("DRAGOMAN_TOKEN", ""),
    ]
    return [one for one in found if one]
