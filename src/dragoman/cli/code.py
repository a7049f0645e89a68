"""`dragoman code …`: Python that calls tools."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, milliseconds
from dragoman.cli.session import AsJson, request, session

app = typer.Typer(no_args_is_help=True, help="Run Python that calls tools, where it can reach nothing else.")


@app.command("run")
def run(
    file: Annotated[str, typer.Argument(help="A file of Python, or - for stdin.", show_default=False)],
    thread: Annotated[
        str | None, typer.Option(help="Only the connectors of this thread.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run code. What it prints and returns goes to stdout, the rest to stderr.

    \b
    echo 'await time_.get_current_time(timezone="Europe/Rome")' | dragoman code run -
    dragoman code run report.py --json

    Only tools that code may call are there: those that only read, and those that allow `code`.
    Ends with 1 when the code failed.
    """
    code = _read(file)
    with session(as_json) as (door, screen):
        with screen.busy("running …"):
            output = door.ask("POST", path_of("code"), {"code": code, "thread": thread})
        if as_json:
            screen.data(output)
        _show(screen, output)


@app.command("guide")
def guide(as_json: AsJson = False) -> None:
    """Show what a model is told before it writes code."""
    request(as_json, lambda screen, answer: screen.text(answer["description"]), "GET", path_of("code"))


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise typer.BadParameter(f"{file} cannot be read: {why}", param_hint="FILE") from None


def _show(screen: Screen, output: dict[str, Any]) -> None:
    if not screen.as_json:
        if output["printed"]:
            screen.text(output["printed"])
        if isinstance(output["result"], str):
            screen.text(output["result"])
        elif output["result"] is not None:
            screen.data(output["result"])
        screen.note(
            f"{output['calls']} calls, {milliseconds(output['duration_ms'])};"
            f" about {output['tokens_outside']:,} tokens stayed outside"
        )
    if not output["ok"]:
        error = output["error"]
        if error["traceback"]:
            sys.stderr.write(error["traceback"].rstrip() + "\n")
        Screen(False).fail({**error, "detail": error["message"]})
        raise typer.Exit(1)
