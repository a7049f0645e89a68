"""What every command has: a screen, a door, and one place where its failures end."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer

from dragoman.cli.door import Door, Refused, open_door, problem_of
from dragoman.cli.screen import Screen
from dragoman.errors import DragomanError
from dragoman.settings import Settings

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


@contextmanager
def failures_on(screen: Screen) -> Generator[None]:
    """Whatever is refused inside is told on the screen, and the command ends with 1."""
    try:
        yield
    except Refused as refused:
        screen.fail(refused.problem)
        raise typer.Exit(1) from None
    except DragomanError as error:
        screen.fail(problem_of(error))
        raise typer.Exit(1) from None


@contextmanager
def session(as_json: bool) -> Generator[tuple[Door, Screen]]:
    screen = Screen(as_json)
    with failures_on(screen), ExitStack() as stack:
        with screen.busy("opening Dragoman …"):
            door = stack.enter_context(open_door(Settings.load()))
        yield door, screen
