"""`dragoman doctor`: looks at everything that a working installation needs, and says what to do."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer

from dragoman.cli.door import Door, Refused, open_door, path_of
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, failures_on
from dragoman.errors import DragomanError
from dragoman.settings import Settings

Verdict = Literal["ok", "note", "wrong"]
_SIGNS = {"ok": "[green]✓[/]", "note": "[yellow]–[/]", "wrong": "[red]✗[/]"}
_VERSION_LIMIT = 10.0
PROGRAMS = (
    ("npx", "servers from npm"),
    ("uvx", "servers from PyPI"),
    ("bwrap", "boxes of programs, and the sandbox of the native tool 'terminal'"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """`note` is what may be missing without harm."""

    subject: str
    verdict: Verdict
    text: str
    hint: str | None = None
    details: tuple[str, ...] = ()


def doctor(as_json: AsJson = False) -> None:
    """Check the home, the key, the store, the programs that servers need, and every connector.

    Ends with 1 when something is wrong.
    """
    screen = Screen(as_json)
    found: list[Finding] = []
    with failures_on(screen):
        for finding in _findings(Settings.load()):
            found.append(finding)
            if not as_json:
                _show(screen, finding)
    is_well = all(finding.verdict != "wrong" for finding in found)
    if as_json:
        screen.data({"ok": is_well, "findings": [asdict(finding) for finding in found]})
    if not is_well:
        raise typer.Exit(1)


def _findings(settings: Settings) -> Iterator[Finding]:
    """An installation that cannot even be opened is a finding like any other."""
    for program, purpose in PROGRAMS:
        yield _program(program, purpose)
    yield _boxes(settings)
    try:
        with open_door(settings) as door:
            yield from _files(settings)
            yield from _opened(door, settings)
    except DragomanError as error:
        yield from _files(settings)
        yield Finding("opening", "wrong", error.message, error.command_hint)


def _files(settings: Settings) -> Iterator[Finding]:
    yield _file("home", settings.home, 0o700)
    for subject, path in (("key", settings.key_file), ("token", settings.token_file)):
        if path.exists():
            yield _file(subject, path, 0o600)


def _opened(door: Door, settings: Settings) -> Iterator[Finding]:
    if door.service:
        yield Finding("service", "ok", f"runs at {door.service.url}")
    else:
        yield Finding("service", "note", "none runs; commands open the store themselves", "dragoman serve")
    store = _store(door, settings)
    yield store
    if store.verdict == "ok" and "DRAGOMAN_URL" not in os.environ:
        yield _schema(settings)
    yield from _connectors(door)


def _file(subject: str, path: Path, mode: int) -> Finding:
    try:
        found = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        return Finding(subject, "wrong", f"{path}: {error.strerror}", "see that you own it and can read it")
    if found & 0o077:
        return Finding(subject, "wrong", f"{path} is open to others ({found:o})", f"chmod {mode:o} {path}")
    return Finding(subject, "ok", str(path))


def _store(door: Door, settings: Settings) -> Finding:
    where = "PostgreSQL" if settings.database_url else str(settings.home / "dragoman.db")
    try:
        door.fetch("/ready")
    except Refused as refused:
        return Finding(
            "store", "wrong", str(refused.problem.get("detail")), "look at its disk or its database"
        )
    return Finding("store", "ok", f"{where} answers")


def _schema(settings: Settings) -> Finding:
    """What an upgrade of Dragoman did to the tables of this installation."""
    from dragoman.cli.migrate import lines
    from dragoman.store.schema import read_schema

    told, *steps = lines(read_schema(settings.store_url))
    return Finding("schema", "ok", told, details=tuple(steps))


def _program(name: str, purpose: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, "note", f"not found; only needed for {purpose}")
    try:
        # The path is what the search path of this user gives: nobody else's word.
        run = subprocess.run(  # noqa: S603
            [path, "--version"], capture_output=True, text=True, timeout=_VERSION_LIMIT, check=False
        )
        version = (run.stdout or run.stderr).strip().splitlines()[:1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(
            name, "note", f"{path} does not run: {type(error).__name__}", f"only needed for {purpose}"
        )
    return Finding(name, "ok", f"{' '.join(version) or path} ({purpose})")


def _boxes(settings: Settings) -> Finding:
    """What keeps the programs of connectors to what is their own on this machine."""
    from dragoman.connections.boxes import machine

    details = tuple(way.text for way in machine.ways())
    mode = machine.chosen("auto")
    if mode != "none":
        return Finding("boxes", "ok", f"programs run in {mode}", details=details)
    is_wrong = settings.multi_user and not settings.allow_unboxed
    text = "nothing here can box a program: each can do what Dragoman can"
    return Finding("boxes", "wrong" if is_wrong else "note", text, machine.INSTALL, details)


def _connectors(door: Door) -> Iterator[Finding]:
    for connector in door.ask("GET", path_of("connectors"))["connectors"]:
        subject = f"connector {connector['slug']}"
        if connector["kind"] == "native":
            continue
        if not connector["enabled"]:
            yield Finding(subject, "note", "disabled", f"dragoman connectors enable {connector['slug']}")
            continue
        yield _connected(door, subject, connector["slug"])


def _connected(door: Door, subject: str, slug: str) -> Finding:
    try:
        connector = door.ask("POST", path_of("connectors", slug, "connect"))
    except Refused as refused:
        return Finding(subject, "wrong", str(refused.problem.get("detail")), refused.problem.get("hint"))
    status = connector["status"]
    if status["state"] == "connected":
        return Finding(subject, "ok", f"connects, {connector['tools']} tools")
    hint = status["hint"] or f"dragoman connectors show {slug}"
    return Finding(subject, "wrong", f"{status['state']}: {status['cause']}", hint)


def _show(screen: Screen, finding: Finding) -> None:
    screen.show(f"{_SIGNS[finding.verdict]} [bold]{plain(finding.subject)}[/]: {plain(finding.text)}")
    for detail in finding.details:
        screen.show(f"  {plain(detail)}")
    if finding.hint and finding.verdict != "ok":
        screen.show(f"  [cyan]hint:[/] {plain(finding.hint)}")
