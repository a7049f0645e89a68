"""A run in front of whoever asked for it: how it is shown, and what is said and returned at its end."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from dragoman.cli import run_lines
from dragoman.cli.door import Door, path_of
from dragoman.cli.interrupts import Interrupts
from dragoman.cli.prompts import Prompter, Stdin
from dragoman.cli.run_watcher import RunEnding, RunWatcher, waited_for
from dragoman.cli.screen import Screen, plain
from dragoman.cli.transcript import PipedTranscript, QuietTranscript, SilentTranscript, Terminal, Transcript

CODES = {"done": 0, "failed": 1, "waiting": 3, "left": 3, "cancelled": 130}
IsQuiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer and nothing else.")]
Waits = Annotated[
    bool,
    typer.Option("--wait", help="Where nobody can be asked here, wait until somebody answers elsewhere."),
]


@contextmanager
def open_watching(door: Door, screen: Screen, quiet: bool, waits: bool) -> Generator[RunWatcher]:
    is_asked_here = sys.stdin.isatty() and not screen.as_json and not waits
    asking = Prompter(door, screen, Stdin()) if is_asked_here else None
    with Interrupts() as interrupts:
        yield RunWatcher(door, _transcript(screen, quiet), interrupts, asking, waits)


def _transcript(screen: Screen, quiet: bool) -> Transcript:
    if screen.as_json:
        return SilentTranscript()
    if quiet:
        return QuietTranscript(screen)
    return Terminal(screen) if screen.is_terminal else PipedTranscript(screen)


def shown_to_its_end(door: Door, screen: Screen, watching: RunWatcher, run: str, quiet: bool) -> int:
    """The code for how it ended."""
    ending = watching.follow(run)
    if screen.as_json:
        found = door.ask("GET", path_of("runs", run))["run"]
        waits = {"waits_for": waited_for(door, run)} if ending.end == "waiting" else {}
        screen.data(found | waits)
    else:
        tell_end(door, screen, run, ending)
        for line in run_lines.ending(ending.facts, ending.seconds) if ending.facts and not quiet else ():
            screen.aside(f"[dim]{line}[/]")
    return CODES[ending.end]


def tell_end(door: Door, screen: Screen, run: str, ending: RunEnding) -> None:
    """Whatever is not the answer itself: what failed, who is waited for, how to go on."""
    match ending.end:
        case "failed":
            error: Mapping[str, Any] = (ending.facts or {}).get("error") or {}
            screen.fail({**error, "detail": error.get("message")})
        case "cancelled":
            screen.note("stopped")
        case "left":
            screen.note(f"it goes on by itself where it can; see it with: dragoman runs follow {run}")
        case "waiting":
            for one in waited_for(door, run):
                tell_wait(screen, one)
            screen.note(f"then: dragoman runs follow {run}")
        case _:
            pass


def tell_wait(screen: Screen, wait: Mapping[str, Any]) -> None:
    agent = f"[bold]{plain(wait['agent'] or 'somebody')}[/]"
    if wait["kind"] == "question":
        screen.aside(f"[yellow]?[/] {agent} asks: {plain(wait['text'])}")
        screen.note(f'answer with: dragoman questions answer {wait["id"]} "…"')
    else:
        arguments = plain(run_lines.brief(wait["arguments"]), 300)
        screen.aside(f"[yellow]?[/] {agent} wants to call [bold]{plain(wait['tool'])}[/] {arguments}")
        screen.note(f"answer with: dragoman approvals answer {wait['id']} once|thread|always|no")
