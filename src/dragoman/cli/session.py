"""What every command has: a screen, a door, a question before it is too late, and one place for failures.

Most commands are one request and how its answer is shown: `request` is all that they do.
"""

import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import typer

from dragoman.cli.door import Door, Refused, open_door, problem_of
from dragoman.cli.screen import Screen
from dragoman.errors import DragomanError
from dragoman.settings import Settings

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Without asking.")]
Show = Callable[[Screen, Any], None]


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


def request(
    as_json: bool,
    show: Show,
    method: str,
    path: str,
    body: Any = None,
    *,
    busy: str = "",
    data: Any = None,
    **query: Any,
) -> Any:
    """Asks the door once. `data` is what a program is told where the answer is empty."""
    with session(as_json) as (door, screen):
        with screen.busy(busy):
            answer = door.ask(method, path, body, **query)
        screen.data(answer if data is None else data) if as_json else show(screen, answer)
        return answer


def is_asked(yes: bool, as_json: bool) -> bool:
    """Whether a person is there who has not said yes yet. A program that removes something means it."""
    return not yes and not as_json and sys.stdin.isatty()


def confirm(question: str) -> None:
    """Goes on with a yes; else the command ends here."""
    typer.confirm(question, abort=True, err=True)


def rows(make: Callable[[Any], Any], name: str, none: str = "", after: str = "") -> Show:
    """The table of what the answer lists under a name; else a note that says why there is none."""

    def show(screen: Screen, answer: Any) -> None:
        if answer[name] or not none:
            screen.show(make(answer[name]))
            screen.note(after) if after else None
        else:
            screen.note(none)

    return show


def card(make: Callable[[Any], Any]) -> Show:
    """One thing, as it is drawn."""
    return lambda screen, answer: screen.show(make(answer))


def note(text: str) -> Show:
    """A sentence that says what is so now."""
    return lambda screen, _: screen.note(text)
