"""`dragoman call`, `results`, `calls` and `events`: calling, and what came of it."""

import json
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Any, cast

import typer

from dragoman.cli.arguments import split_words, typed
from dragoman.cli.completion import names_of
from dragoman.cli.door import Door, HttpDoor, events_in, find_service, path_of
from dragoman.cli.prompts import Prompter, Stdin
from dragoman.cli.screen import Screen, cleaned, milliseconds, plain
from dragoman.cli.session import AsJson, failures_on, request, rows, session
from dragoman.cli.tables import calls_table
from dragoman.errors import Unreachable
from dragoman.settings import Settings

results = typer.Typer(no_args_is_help=True, help="Read results that were too large to show.")
calls = typer.Typer(no_args_is_help=True, help="Look at what was called.")


def call(
    name: Annotated[
        str, typer.Argument(help="The tool.", show_default=False, autocompletion=names_of("tools"))
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Arguments; or - to read JSON from stdin."),
    ] = None,
    arg: Annotated[list[str] | None, typer.Option("--arg", metavar="K=V", help="The same.")] = None,
    json_args: Annotated[str | None, typer.Option(metavar="JSON", help="All arguments as an object.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds; shortens the connector's own.")] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            help="In this thread: only what is active there can be called.",
            show_default=False,
            autocompletion=names_of("threads"),
        ),
    ] = None,
    messages: Annotated[
        bool,
        typer.Option("--messages", help="Also what is sent to the server and what it answers, on stderr."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Call a tool. Values are read as the tool's schema wants them; a repeated key is a list.

    \b
    dragoman call mcp_time_get_current_time timezone=Europe/Rome
    dragoman call time__convert_time --json-args '{"source_timezone": "Asia/Tokyo", "time": "09:00"}'
    dragoman call email__send-email to=ada@example.com to=alan@example.com subject=Tea
    echo '{"limit": 2}' | dragoman call email__read-emails -
    dragoman call email__read-emails limit=2 --thread thr_4f…
    dragoman call email__read-emails limit=2 --messages

    The result goes to stdout; with --json all that is known of the call. Ends with 1 when the call failed.
    What the server asks in the middle is asked at the terminal, and declined where there is none.
    """
    given = _given_arguments(words or [], arg or [], json_args)
    with session(as_json) as (door, screen):
        with screen.busy(f"calling {name} …"):
            arguments = _typed_arguments(door, name, given)
        body = {"tool": name, "arguments": arguments, "timeout": timeout, "thread": thread}
        output = _called(door, screen, {**body, "messages": True} if messages else body)
        if as_json:
            screen.data(output)
        _show_output(screen, output)


def _called(door: Door, screen: Screen, body: dict[str, Any]) -> dict[str, Any]:
    """The output. At a terminal its progress is shown, and the person there answers what is asked.

    What was exchanged with the server, where that is wanted, is told as it comes; of JSON it is a part.
    """
    has_person = not screen.as_json and sys.stdin.isatty() and sys.stderr.isatty()
    body = {**body, "ask": has_person}
    if not has_person and "messages" not in body:
        return door.ask("POST", path_of("call"), body)
    prompter = Prompter(door, screen, Stdin())
    exchanged: list[dict[str, Any]] = []
    with door.follow(path_of("call"), body=body) as lines, closing(screen.status()) as status:
        status.show(f"calling {body['tool']} …")
        for kind, data in events_in(lines):
            if kind == "call.finished":
                return {**data, "messages": exchanged} if screen.as_json else data
            if kind == "call.message" and screen.as_json:
                exchanged.append(data)
            elif kind == "call.message":
                status.hide()
                screen.aside(plain(_message(data)))
            elif kind == "call.progress":
                status.show(f"{body['tool']}: {_step(data)}")
            elif kind == "question.asked":
                status.hide()
                prompter.answer(data)
                status.show(f"calling {body['tool']} …")
    raise Unreachable("the service ended before the call did", hint="has it just been stopped?")


def _message(told: Mapping[str, Any]) -> str:
    sign = "→" if told["direction"] == "sent" else "←"
    return f"{sign} {told['milliseconds']:.0f} ms {json.dumps(told['message'], ensure_ascii=False)}"


def _step(progress: Mapping[str, Any]) -> str:
    total = f" of {progress['total']:g}" if progress["total"] is not None else ""
    message = f" {progress['message']}" if progress["message"] else ""
    return f"{progress['progress']:g}{total}{message}"


def _given_arguments(words: list[str], options: list[str], text: str | None) -> Any:
    """A JSON object, or pairs that the schema must type."""
    if words == ["-"]:
        words, text = [], sys.stdin.read()
    if text is not None and (words or options):
        raise typer.BadParameter("give the arguments either as JSON or as key=value, not both")
    if text is None:
        try:
            return split_words([*words, *options])
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="KEY=VALUE") from None
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"this is no valid JSON: {error}", param_hint="--json-args") from None
    if not isinstance(arguments, dict):
        raise typer.BadParameter("the arguments must be one JSON object", param_hint="--json-args")
    return cast("dict[str, Any]", arguments)


def _typed_arguments(door: Door, name: str, given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return cast("dict[str, Any]", given)
    if not given:
        return {}
    return typed(given, door.ask("GET", path_of("tools", name))["input_schema"])


def _show_output(screen: Screen, output: dict[str, Any]) -> None:
    metadata = output["metadata"]
    for warning in metadata["warnings"]:
        screen.warn(warning)
    if not output["ok"]:
        error = output["error"]
        Screen(False).fail({**error, "detail": error["message"]})
        raise typer.Exit(1)
    if screen.as_json:
        return
    if isinstance(output["result"], str):
        screen.text(output["result"])
    elif output["result"] is not None:
        screen.data(output["result"])
    for block in output["content"]:
        if block.get("type") not in ("text", "resource"):
            screen.note(
                f"there is also a block of type {block.get('type')} ({block.get('mimeType', 'unknown')})"
            )
    if metadata["handle"]:
        screen.note(
            f"this is a part of {metadata['size']:,} bytes; the whole:"
            f" dragoman results show {metadata['handle']}"
        )


@results.command("show")
def show_result(
    handle: Annotated[str, typer.Argument(help="As the call told it.", show_default=False)],
    offset: Annotated[int | None, typer.Option(help="From this byte on.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many bytes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a kept result to stdout, as the tool gave it.

    \b
    dragoman results show result_… > whole.txt
    dragoman results show result_… --offset 1000 --limit 500
    """
    with session(as_json) as (door, screen):
        answer = door.fetch(path_of("results", handle), offset=offset, limit=limit)
        text = answer.body.decode("utf-8", "replace")
        if as_json:
            screen.data({"handle": handle, "content_type": answer.content_type, "body": text})
        elif screen.is_terminal:
            screen.text(text)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(answer.body)


@calls.command("list")
def list_calls(
    limit: Annotated[int, typer.Option(help="The last so many.")] = 20, as_json: AsJson = False
) -> None:
    """List the last calls, newest first. Neither arguments nor results are remembered."""
    show = rows(calls_table, "calls", "nothing has been called yet")
    request(as_json, show, "GET", path_of("calls"), limit=limit)


def events(as_json: AsJson = False) -> None:
    """Follow what happens in the running service, until Ctrl-C. With --json one document per line."""
    screen = Screen(as_json)
    with failures_on(screen):
        service = find_service(Settings.load())
        if service is None:
            raise Unreachable("no service is running for this home", hint="start one: dragoman serve")
        with HttpDoor(service).follow(path_of("events")) as lines:
            for line in lines:
                if line.startswith(b": listening"):
                    screen.note(f"listening to {service.url}")
                if line.startswith(b"data: "):
                    _show_event(json.loads(line[6:]), screen)


def _show_event(event: dict[str, Any], screen: Screen) -> None:
    if screen.as_json:
        print(json.dumps(event), flush=True)
        return
    data = event["data"]
    facts = [
        f"{name}={value}" for name, value in data.items() if value not in (None, "", []) and name != "id"
    ]
    if isinstance(data.get("duration_ms"), float):
        facts = [fact for fact in facts if not fact.startswith("duration_ms")]
        facts.append(milliseconds(data["duration_ms"]))
    words = [event["time"][11:19], event["kind"], event["connector"] or "", " ".join(facts)]
    print(cleaned("  ".join(word for word in words if word)).replace("\n", " "), flush=True)
