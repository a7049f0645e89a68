"""What every command has: a screen, a door, a question before it is too late, and one place for failures.

Most commands are one request and how its answer is shown: `request` is all that they do.
"""

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, cast

import typer

from dragoman.cli.door import Door, Refused, open_door, path_of, problem_of
from dragoman.cli.screen import Screen
from dragoman.errors import DragomanError, InvalidConfig
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


def add_once(door: Door, noun: str, name: str, asked: Mapping[str, Any], **query: Any) -> tuple[Any, bool]:
    """Adds it, and says whether it is new. What is there already just as asked for is no failure: a script
    may be run again. Secrets cannot be compared, so with one in it a name that is taken is refused.
    """
    try:
        return door.ask("POST", path_of(noun), {"name": name, **asked, **query}), True
    except Refused as refused:
        if refused.problem.get("code") != "conflict":
            raise
        found = door.ask("GET", path_of(noun, name), **query)
        facts = {"shared": found.get("tier") == "workspace", **found, **found.get("configuration", {})}
        if not _has(facts, {key: value for key, value in asked.items() if key != "connect"}):
            raise
        return found, False


def _has(found: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether all that was asked for is there; what was not asked for may be anything."""
    for name, value in asked.items():
        have = found.get(name)
        if isinstance(value, dict) and isinstance(have, dict):
            if not _has(cast("dict[str, Any]", have), cast("dict[str, Any]", value)):
                return False
        elif name not in found or have != value:
            return False
    return True


def is_asked(yes: bool, as_json: bool) -> bool:
    """Whether a person is there who has not said yes yet."""
    return not yes and not as_json and sys.stdin.isatty()


def confirm(question: str, yes: bool, as_json: bool) -> None:
    """Goes on with a yes; else the command ends here. Where nobody can be asked, only `--yes` is one."""
    if is_asked(yes, as_json):
        typer.confirm(question, abort=True, err=True)
    elif not yes:
        raise InvalidConfig("nobody can be asked here, and nothing was changed", hint="say yes with --yes")


def request_removal(
    as_json: bool, show: Show, path: str, question: str, yes: bool, *, busy: str = "", name: str, **query: Any
) -> None:
    """Removes what the door has at the path, once it is agreed; a program is told the name of what went."""
    with session(as_json) as (door, screen):
        confirm(question, yes, as_json)
        with screen.busy(busy):
            door.ask("DELETE", path, None, **query)
        screen.data({"removed": name}) if as_json else show(screen, None)


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
