"""`dragoman runs …`: what agents worked on, how it went, and stopping it."""

import time
from typing import Annotated, Any

import typer

from dragoman.cli.completion import names_of
from dragoman.cli.door import Door, path_of
from dragoman.cli.run_endings import IsQuiet, Waits, open_watching, shown_to_its_end
from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, Yes, confirm, is_asked, request, session
from dragoman.cli.timeline import prompt_text, runs_table, timeline_table
from dragoman.errors import NotFound
from dragoman.run import FINISHED

app = typer.Typer(no_args_is_help=True, help="What agents worked on: look, follow, stop.")

_PATIENCE = 5.0
Id = Annotated[
    str,
    typer.Argument(help="As `runs list` shows it.", show_default=False, autocompletion=names_of("runs")),
]
IdOrLatest = Annotated[
    str | None,
    typer.Argument(
        help="As `runs list` shows it; your latest if left out.",
        show_default=False,
        autocompletion=names_of("runs"),
    ),
]


@app.command("list")
def list_runs(
    thread: Annotated[str | None, typer.Option(help="Only those of this thread.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only those of this agent.")] = None,
    status: Annotated[
        str | None, typer.Option(help="queued, running, waiting, done, failed or cancelled.")
    ] = None,
    children: Annotated[bool, typer.Option("--children", help="Also those that an agent started.")] = False,
    before: Annotated[str | None, typer.Option(help="Only those that began before this time.")] = None,
    sort: Annotated[str, typer.Option(help="newest, longest or costliest.")] = "newest",
    after: Annotated[str | None, typer.Option(help="Only those that follow this run in the list.")] = None,
    limit: Annotated[int, typer.Option(help="Most runs.", min=1, max=500)] = 20,
    as_json: AsJson = False,
) -> None:
    """List your runs, newest first.

    \b
    dragoman runs list
    dragoman runs list --status failed --agent mailer
    dragoman runs list --sort costliest --limit 5
    """

    def show(screen: Screen, answer: dict[str, Any]) -> None:
        if not answer["runs"]:
            return screen.note('there is no run yet: dragoman ask "…"' if not status else "there is none")
        screen.show(runs_table(answer["runs"]))
        last, order = answer["next"], f" --sort {sort}" if sort != "newest" else ""
        return screen.note(f"more: dragoman runs list{order} --after {last}") if last else None

    asked: dict[str, Any] = {
        "thread": thread,
        "agent": agent,
        "status": status,
        "before": before,
        "sort": sort,
        "after": after,
        "limit": limit,
    }
    request(as_json, show, "GET", path_of("runs"), children="true" if children else None, **asked)


@app.command("show")
def show(
    run: IdOrLatest = None,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="All that its models were sent, as it was sent.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what happened in a run, step by step: the latest, or the one that you name.

    \b
    dragoman runs show
    dragoman runs show run_4f…
    dragoman runs show --prompts

    What was offered, what the model chose and with which values, what was sent and came back (previews
    without secrets), tokens, cost and times; what it handed on is set in.
    """
    with session(as_json) as (door, screen):
        answer = door.ask(
            "GET", path_of("runs", run or latest_run(door), "prompts" if prompts else "timeline")
        )
        if as_json:
            return screen.data(answer)
        return screen.text(prompt_text(answer["prompts"])) if prompts else screen.show(timeline_table(answer))


@app.command("follow")
def follow(
    run: IdOrLatest = None, waits: Waits = False, quiet: IsQuiet = False, as_json: AsJson = False
) -> None:
    """Watch a run from its beginning to its end; answer what it asks. Ctrl-C stops it, twice leaves it.

    \b
    It ends as ask does: 0 answered, 1 failed, 3 a person is waited for, 130 stopped.
    """
    with session(as_json) as (door, screen), open_watching(door, screen, quiet, waits) as watching:
        root = door.ask("GET", path_of("runs", run or latest_run(door)))["run"]["root"]
        raise typer.Exit(shown_to_its_end(door, screen, watching, root, quiet))


@app.command("cancel")
def cancel(
    run: Id,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Stop a run with all that is under it. Calls under way are cancelled at their servers."""
    with session(as_json) as (door, screen):
        if is_asked(yes, as_json):  # a program may stop what runs without a yes: nothing is lost
            found = door.ask("GET", path_of("runs", run))["run"]
            confirm(f"Stop the run of {found['agent'] or 'several agents'}?", yes, as_json)
        asked = door.ask("POST", path_of("runs", run, "cancel"))
        with screen.busy("stopping …"):
            after = _ended(door, asked)
        if as_json:
            return screen.data(after)
        stopped = "is stopped" if after["status"] in FINISHED else "stops as soon as it is taken up again"
        return screen.note(f"{after['id']} {stopped}")


def latest_run(door: Door) -> str:
    """The run that began last."""
    runs = door.ask("GET", path_of("runs"), limit=1)["runs"]
    if not runs:
        raise NotFound("there is no run yet", hint='begin one: dragoman ask "…"')
    return runs[0]["id"]


def _ended(door: Door, run: dict[str, Any]) -> dict[str, Any]:
    """As it is a moment later: in a process of its own, nobody would stop it once this one is gone."""
    limit = time.monotonic() + _PATIENCE
    while run["status"] not in FINISHED and time.monotonic() < limit:
        time.sleep(0.1)
        run = door.ask("GET", path_of("runs", run["id"]))["run"]
    return run
