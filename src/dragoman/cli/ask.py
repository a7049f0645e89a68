"""`dragoman ask`: one message, its answer as it comes, and an exit code that says how it ended."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dragoman.cli import run_lines
from dragoman.cli.attachments import Attached, names_of, with_files
from dragoman.cli.door import Door, path_of
from dragoman.cli.run_endings import CODES, IsQuiet, Waits, open_watching, shown_to_its_end, tell_end
from dragoman.cli.run_watcher import RunWatcher
from dragoman.cli.screen import Screen, plain
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
    attach: Attached = None,
    waits: Waits = False,
    quiet: IsQuiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask, and see the answer come.

    \b
    dragoman ask "check my 2 latest emails"
    dragoman ask "@tracker which issues are open?" --thread thr_4f…
    dragoman ask --connector tracker "file a bug for the broken login" --max-tools 3
    dragoman ask "what is wrong in @build.log?"
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
    if connector is not None and attach:
        raise typer.BadParameter("goes without --connector", param_hint="--attach")
    said = _message(text)
    # What comes by a pipe may be anybody's words: it names no files of this machine.
    named, files = with_files(said if said == text and connector is None else "", attach or ())
    with session(as_json) as (door, screen), open_watching(door, screen, quiet, waits) as watching:
        if connector is not None:
            options = {"max_tools": max_tools, "plan_only": plan_only or None}
            raise typer.Exit(_query_connector(door, screen, watching, connector, {"query": said, **options}))
        given = {name: value for name, value in body.items() if value is not None}
        path = path_of("threads", thread, "messages") if thread else path_of("messages")
        if files and not quiet:
            screen.note(f"attached: {plain(names_of(files))}")
        with screen.busy("…"):
            accepted = door.ask("POST", path, {"text": named or said, **given, **files})
        raise typer.Exit(shown_to_its_end(door, screen, watching, accepted["run"]["id"], quiet))


def _message(text: str | None) -> str:
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise typer.BadParameter("say what you want, or give it on stdin", param_hint="TEXT")
    return sys.stdin.read()


def _query_connector(
    door: Door, screen: Screen, watching: RunWatcher, connector: str, query: Mapping[str, Any]
) -> int:
    """The code for how it ended. Where nobody can begin, that is the answer."""
    body = {name: value for name, value in query.items() if value is not None}
    answer = door.ask("POST", path_of("connectors", connector, "query"), body, wait="false")
    if "run" in answer:
        run = answer["run"]["id"]
        ending = watching.follow(run)
        if ending.end in ("waiting", "left", "cancelled"):
            tell_end(door, screen, run, ending)
            return CODES[ending.end]
        answer = door.ask("GET", path_of("connectors", connector, "query", run))
    _show_answer(screen, answer)
    return 0 if answer["status"] == "success" else 1


def _show_answer(screen: Screen, answer: Mapping[str, Any]) -> None:
    """The text was shown as it came; here is what it rests on, or why there is none."""
    if screen.as_json:
        screen.data(answer)
        return
    metadata: Mapping[str, Any] = answer["metadata"]
    if answer["status"] == "error":
        error = answer["error"]
        screen.fail({"detail": f"{error['message']} ({error['code']})", "hint": error.get("hint")})
    for context in metadata.get("contexts", ()):
        screen.aside(f"[dim]{run_lines.source(context)}[/]")
    if metadata.get("usage") and (used := run_lines.usage_line(metadata)):
        screen.aside(f"[dim]{used}[/]")
