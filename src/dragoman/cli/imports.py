"""`dragoman import` and `dragoman export`: configurations that people have, in and out."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.door import Door, path_of
from dragoman.cli.input_values import Inputs, asked
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, session
from dragoman.cli.setting_options import pairs
from dragoman.private_files import overwrite_private

_MARKS = {
    "add": ("+", "green"),
    "replace": ("~", "yellow"),
    "unchanged": ("=", "dim"),
    "conflict": ("!", "yellow"),
    "needs_input": ("?", "magenta"),
    "invalid": ("✗", "red"),
}
_LEFT_OUT = ("conflict", "needs_input", "invalid")


def import_files(
    files: Annotated[
        list[Path], typer.Argument(help="Files, folders of files, or - for stdin.", metavar="FILE…")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would happen and change nothing.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put what differs in the place of what exists.")
    ] = False,
    connect: Annotated[
        bool, typer.Option("--connect/--no-connect", help="Connect at once to what was added.")
    ] = True,
    inputs: Inputs = None,
    as_json: AsJson = False,
) -> None:
    """Take over a configuration that you already have. Importing twice changes nothing.

    \b
    dragoman import ~/.config/Claude/claude_desktop_config.json
    dragoman import .vscode/mcp.json --input github_token=…
    dragoman import action_servers.json agent_configs/ --dry-run

    Reads mcpServers (Claude, Cursor, Windsurf), servers (VS Code), Codex's config.toml, action_servers.json,
    agent_configs, dragoman.toml and what dragoman export wrote. Secrets in them are encrypted. Ends with 1
    when something was left out.
    """
    request = {
        "dry_run": dry_run,
        "replace": replace,
        "connect": connect,
        "inputs": pairs("--input", inputs or []),
    }
    with session(as_json) as (door, screen):
        texts, unread = loaded(files)
        steps = [*unread, *(imported(door, screen, {**request, "files": texts}) if texts else [])]
        if as_json:
            screen.data({"steps": steps})
        else:
            show_steps(screen, steps, dry_run)
        if any(step["action"] in _LEFT_OUT for step in steps):
            raise typer.Exit(1)


def export(
    form: Annotated[
        str, typer.Option("--format", help="dragoman, or mcpServers for other clients.")
    ] = "dragoman",
    include_secrets: Annotated[
        bool,
        typer.Option("--include-secrets", help="Write the secrets, too: anyone who reads the file has them."),
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file, in place of stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write every connector as text that can be imported again, here or elsewhere.

    \b
    dragoman export > connectors.json
    dragoman export --format mcpServers -o .mcp.json
    """
    with session(as_json) as (door, screen):
        answer = door.fetch(path_of("export"), format=form, include_secrets=str(include_secrets).lower())
        text = answer.body.decode()
        if output is None:
            sys.stdout.write(text)
            return
        overwrite_private(output, text.encode())
        screen.note(f"written to {output}")


def loaded(paths: Iterable[Path]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The texts as the door wants them, and a step for each file that cannot be read."""
    from dragoman.errors import DragomanError
    from dragoman.formats.import_files import files_in, load

    texts: list[dict[str, Any]] = []
    unread: list[dict[str, Any]] = []
    for given in paths:
        if str(given) == "-":
            texts.append({"text": sys.stdin.read(), "folder": str(Path.cwd()), "home": str(Path.home())})
            continue
        for path in files_in(given):
            try:
                file = load(path)
            except DragomanError as error:
                unread.append(
                    {"kind": "file", "name": str(path), "action": "invalid", "reason": error.message}
                )
                continue
            places = {"folder": file.places.folder, "home": file.places.home}
            texts.append({"name": file.name, "text": file.text, "env_files": dict(file.env_files), **places})
    return texts, unread


def imported(door: Door, screen: Screen, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Asks a person for what the files ask for, before anything is written."""
    needs = [need for step in _asked_door(door, screen, {**request, "dry_run": True}) for need in _open(step)]
    if needs:
        request = {**request, "inputs": asked(needs, request["inputs"])}
    return _asked_door(door, screen, request)


def _asked_door(door: Door, screen: Screen, request: dict[str, Any]) -> list[dict[str, Any]]:
    with screen.busy("reading …" if request["dry_run"] else "importing …"):
        return door.ask("POST", path_of("import"), request)["steps"]


def _open(step: Mapping[str, Any]) -> list[dict[str, Any]]:
    return step["needs"] if step["action"] == "needs_input" else []


def show_steps(screen: Screen, steps: list[dict[str, Any]], is_dry: bool) -> None:
    for step in steps:
        mark, style = _MARKS[step["action"]]
        name = step.get("slug") or step["name"]
        what = step["reason"] or _outcome(step)
        action = step["action"].replace("_", " ")
        screen.show(f"[{style}]{mark} {action}[/] [bold]{plain(name)}[/] {plain(what)}")
        for warning in step.get("warnings", []):
            screen.warn(f"{name}: {warning}")
        for secret in step.get("missing", []):
            screen.warn(
                f"{name}: the secret {secret} is not in the file: dragoman connectors update {name} …"
            )
    if is_dry:
        screen.note("nothing was changed: this was a dry run")
    if any(step["action"] == "conflict" for step in steps):
        screen.note("what collides was left alone; --replace puts the new in the place of the old")


def _outcome(step: Mapping[str, Any]) -> str:
    connector = step.get("connector")
    if connector is None:
        return step.get("reached_by", "")
    status = connector["status"]
    if status["cause"]:
        return f"{step['reached_by']} ({status['state']}: {status['cause']})"
    return f"{step['reached_by']} ({connector['tools']} tools)"
