"""`dragoman ask`: one message, its answer as it comes, and an exit code that says how it ended."""

import sys
from typing import Annotated, Any

import typer

from dragoman.cli.connector_query import query_connector
from dragoman.cli.door import path_of
from dragoman.cli.run_endings import IsQuiet, Waits, open_watching, shown_to_its_end
from dragoman.cli.session import AsJson, session


def ask(
    text: Annotated[
        str | None, typer.Argument(help="What you want; - or nothing reads it from stdin.")
    ] = None,
    thread: Annotated[str | None, typer.Option(help="In this thread; else a new one begins.")] = None,
    agent: Annotated[str | None, typer.Option(help="To this agent, whatever the text mentions.")] = None,
    connector: Annotated[
        str | None, typer.Option(help="To the agent of this connector, in no thread.")
    ] = None,
    max_tools: Annotated[int | None, typer.Option(help="The most tool calls it makes.", min=1)] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="With --connector: only say what it would do.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="A model for this once: openai:gpt-5, offline …")] = None,
    exposure: Annotated[
        str | None, typer.Option(help="How tools are reached: auto, direct, search, delegate or code.")
    ] = None,
    waits: Waits = False,
    quiet: IsQuiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask, and see the answer come.

    \b
    dragoman ask "check my 2 latest emails"
    dragoman ask "@tracker which issues are open?" --thread thr_4f…
    dragoman ask --connector tracker "file a bug for the broken login" --max-tools 3
    dragoman ask --quiet - < question.txt

    \b
    Where an agent needs a yes or an answer, you are asked here. Ctrl-C stops the run.
    It ends with 0 answered, 1 failed, 2 asked wrongly, 3 a person is waited for, 130 stopped.
    """
    if connector is None and plan_only:
        raise typer.BadParameter("goes with --connector only", param_hint="--plan-only")
    body: dict[str, Any] = {"agent": agent, "model": model, "exposure": exposure, "max_tools": max_tools}
    if connector is not None and any((thread, agent, model, exposure)):
        raise typer.BadParameter(
            "goes without --thread, --agent, --model and --exposure", param_hint="--connector"
        )
    said = _message(text)
    with session(as_json) as (door, screen), open_watching(door, screen, quiet, waits) as watching:
        if connector is not None:
            options = {"max_tools": max_tools, "plan_only": plan_only or None}
            raise typer.Exit(query_connector(door, screen, watching, connector, {"query": said, **options}))
        given = {name: value for name, value in body.items() if value is not None}
        path = path_of("threads", thread, "messages") if thread else path_of("messages")
        with screen.busy("…"):
            accepted = door.ask("POST", path, {"text": said, **given})
        raise typer.Exit(shown_to_its_end(door, screen, watching, accepted["run"]["id"], quiet))


def _message(text: str | None) -> str:
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise typer.BadParameter("say what you want, or give it on stdin", param_hint="TEXT")
    return sys.stdin.read()
