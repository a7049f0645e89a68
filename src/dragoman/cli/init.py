"""`dragoman init`: takes over the servers that MCP clients have, and lets those clients use Dragoman instead.

Nothing is written before a person has said yes, and of every file that is changed a copy stays beside it.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from dragoman.cli import client_files
from dragoman.cli.connect import new_key, program_entry
from dragoman.cli.door import Door, path_of
from dragoman.cli.imports import imported, loaded, show_steps
from dragoman.cli.mcp_clients import ClientProgram, clients
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, Yes, session
from dragoman.errors import DragomanError
from dragoman.settings import Settings

# Where a project keeps servers for everybody who works in it: read, and never written.
_PROJECT_FILES = {
    "Claude Code, this project": ".mcp.json",
    "Cursor, this project": ".cursor/mcp.json",
    "VS Code, this project": ".vscode/mcp.json",
}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A client's file with the names of its servers. `client` is None where nothing is written."""

    title: str
    file: Path
    client: ClientProgram | None
    servers: tuple[str, ...] = ()
    is_connected: bool = False
    problem: str = ""


def init(yes: Yes = False, as_json: AsJson = False) -> None:
    """Begin: take over the servers of Claude, Cursor, VS Code and Codex, and connect these to Dragoman.

    \b
    dragoman init          show what was found, and ask before each step
    dragoman init --yes    all of it without asking

    A client then has one server, Dragoman, in the place of those that were taken over. What its file was
    is kept beside it as NAME.before-dragoman. Running it again changes only what is new.
    """
    settings = Settings.load()
    with session(as_json) as (door, screen):
        found = _found()
        steps = _planned(door, screen, found)
        if not as_json:
            _show_found(screen, found, steps)
        is_imported = _has_new(steps) and _agreed(yes, as_json, "Take them over into Dragoman?")
        if is_imported:
            steps = imported(door, screen, _request(found))
            if not as_json:
                _show_steps(screen, steps)
        connectors = door.ask("GET", path_of("connectors"))["connectors"]
        written = [
            file
            for one in found
            if (file := _connected(screen, settings, one, _names_of(steps, connectors, one), yes, as_json))
        ]
        if as_json:
            return _tell(screen, found, steps, is_imported, written)
        return _show_next(screen, connectors, bool(found) and not (is_imported or written))


def _found() -> list[FoundFile]:
    """Of each client that is installed here: its file, read as an import would."""
    found = [
        _read(client.title, client.file, client)
        for client in clients().values()
        if client.file.exists() or _is_installed(client)
    ]
    own = {one.file for one in found}
    project = {title: Path.cwd() / name for title, name in _PROJECT_FILES.items()}
    return found + [
        _read(title, file, None) for title, file in project.items() if file.exists() and file not in own
    ]


def _is_installed(client: ClientProgram) -> bool:
    """It has a folder of its own, if no servers yet."""
    return client.file.parent != Path.home() and client.file.parent.is_dir()


def _read(title: str, file: Path, client: ClientProgram | None) -> FoundFile:
    from dragoman.formats.import_files import read_file

    if not file.exists():
        return FoundFile(title, file, client)
    plan = read_file(file)
    if not plan.connectors and plan.format == "unknown":
        # A client's file without servers is no file that could be imported, and nothing is wrong with it.
        reason = plan.problems[0].reason
        is_empty = "nothing that Dragoman can import" in reason or "is empty" in reason
        return FoundFile(title, file, client, problem="" if is_empty else reason)
    names = [
        *(one.name for one in plan.connectors if not one.is_dragoman),
        *(one.entry for one in plan.problems),
    ]
    return FoundFile(title, file, client, tuple(names), any(one.is_dragoman for one in plan.connectors))


def _planned(door: Door, screen: Screen, found: Iterable[FoundFile]) -> list[dict[str, Any]]:
    request = _request(found)
    if not request["files"]:
        return []
    with screen.busy("reading …"):
        return door.ask("POST", path_of("import"), {**request, "dry_run": True})["steps"]


def _request(found: Iterable[FoundFile]) -> dict[str, Any]:
    texts, _ = loaded(one.file for one in found if one.servers)
    return {"files": texts, "dry_run": False, "replace": False, "connect": True, "inputs": {}}


def _show_found(screen: Screen, found: list[FoundFile], steps: list[dict[str, Any]]) -> None:
    if not found:
        screen.note("no Claude, Cursor, VS Code or Codex was found on this machine")
    for one in found:
        what = plain(", ".join(one.servers)) or "[dim]no servers[/]"
        connected = " [dim](uses Dragoman)[/]" if one.is_connected else ""
        screen.show(f"[bold]{plain(one.title)}[/] [dim]{plain(str(one.file))}[/]\n  {what}{connected}")
        if one.problem:
            screen.warn(one.problem)
    _show_steps(screen, steps)


def _show_steps(screen: Screen, steps: list[dict[str, Any]]) -> None:
    """What Dragoman does not have yet."""
    if new := [step for step in steps if step["action"] != "unchanged"]:
        screen.show("")
        show_steps(screen, new, False)


def _has_new(steps: Iterable[Mapping[str, Any]]) -> bool:
    return any(step["action"] in ("add", "needs_input") for step in steps)


def _agreed(yes: bool, as_json: bool, question: str) -> bool:
    """Nobody at a terminal and no `--yes` is a no."""
    if yes or as_json or not sys.stdin.isatty():
        return yes
    return typer.confirm(question, default=False, err=True)


def _names_of(
    steps: Iterable[Mapping[str, Any]], connectors: Iterable[Mapping[str, Any]], found: FoundFile
) -> list[str]:
    """Those servers of a file that work in Dragoman: what does not stays where it may work."""
    working = {one["slug"] for one in connectors if one["status"]["state"] == "connected" or one["tools"]}
    taken = {
        step["name"]
        for step in steps
        if step.get("source") == str(found.file)
        and step["slug"] in working
        and (step.get("connector") or step["action"] == "unchanged")
    }
    return [name for name in found.servers if name in taken]


def _connected(
    screen: Screen, settings: Settings, found: FoundFile, names: list[str], yes: bool, as_json: bool
) -> dict[str, Any] | None:
    """Puts Dragoman into the client's file, in the place of these. None when it stays as it is."""
    if (client := found.client) is None or found.problem:
        return None
    try:
        before = client_files.read(client.file)
        names = [name for name in names if name in client_files.names_in(client, before)]
        if found.is_connected and not names:
            return None
        instead = f" in the place of {', '.join(names)}" if names else ""
        if not _agreed(yes, as_json, f"Let {client.title} use Dragoman{instead}?"):
            return None
        # A service elsewhere lets nobody in by the token of this home.
        token = new_key(settings, client) if "DRAGOMAN_URL" in os.environ else None
        after = client_files.merged(
            client, before, program_entry(settings, client, token=token), instead_of=names
        )
        backup = client_files.write(client.file, before, after)
    except DragomanError as error:
        # The other clients can still be connected.
        screen.warn(f"{error.message}; paste it yourself: dragoman connect {client.name}")
        return None
    if not as_json:
        kept = f"; what it was is in {backup}" if backup else ""
        screen.note(f"{client.file} is written{kept}; {client.after}")
    return {"client": client.name, "file": str(client.file), "backup": str(backup) if backup else None}


def _tell(
    screen: Screen,
    found: Iterable[FoundFile],
    steps: list[dict[str, Any]],
    is_imported: bool,
    written: list[dict[str, Any]],
) -> None:
    facts = [
        {
            "title": one.title,
            "file": str(one.file),
            "servers": list(one.servers),
            "is_connected": one.is_connected,
            "problem": one.problem or None,
        }
        for one in found
    ]
    screen.data({"found": facts, "steps": steps, "imported": is_imported, "written": written})


def _show_next(screen: Screen, connectors: Iterable[Mapping[str, Any]], is_left_to_do: bool) -> None:
    if is_left_to_do and not sys.stdin.isatty():
        screen.note("nothing was changed; to do all of it: dragoman init --yes")
    elif any(one["kind"] != "native" for one in connectors):
        screen.note("see what you have: dragoman tools list; look at it in a browser: dragoman serve")
    else:
        screen.note("there is no server yet: dragoman connectors add time -- uvx mcp-server-time")
