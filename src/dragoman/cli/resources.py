"""`dragoman resources …` and `dragoman prompts …`: what servers let read, and texts that they keep."""

import json
import sys
from base64 import b64decode
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import split_words
from dragoman.cli.completion import names_of
from dragoman.cli.door import events_in, path_of
from dragoman.cli.screen import Screen, cleaned, plain
from dragoman.cli.session import AsJson, request, session
from dragoman.cli.tables import new_table
from dragoman.errors import Unreachable

if TYPE_CHECKING:
    from rich.table import Table

resources = typer.Typer(no_args_is_help=True, help="List, read and watch what servers offer beside tools.")
prompts = typer.Typer(no_args_is_help=True, help="List and fill the prompts that servers keep.")
Connector = Annotated[
    str | None,
    typer.Argument(help="Only of this one.", show_default=False, autocompletion=names_of("connectors")),
]
Thread = Annotated[
    str | None,
    typer.Option(
        help="In this thread: only what is active there.",
        show_default=False,
        autocompletion=names_of("threads"),
    ),
]


@resources.command("list")
def list_resources(connector: Connector = None, thread: Thread = None, as_json: AsJson = False) -> None:
    """List what the servers let read.

    \b
    dragoman resources list
    dragoman resources list files --json
    """

    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        found = answer["resources"]
        screen.show(_resource_table(found, "uri")) if found else screen.note("no server lists a resource")
        _show_missing(screen, answer)

    request(
        as_json,
        show,
        "GET",
        path_of("resources"),
        busy="asking the servers …",
        connector=connector,
        thread=thread,
    )


@resources.command("templates")
def list_templates(connector: Connector = None, thread: Thread = None, as_json: AsJson = False) -> None:
    """List addresses with gaps, such as {id}: fill them in, and read what is there."""

    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        found = answer["templates"]
        none = "no server has addresses with gaps"
        screen.show(_resource_table(found, "uri_template")) if found else screen.note(none)
        _show_missing(screen, answer)

    path = path_of("resources", "templates")
    request(as_json, show, "GET", path, busy="asking the servers …", connector=connector, thread=thread)


@resources.command("read")
def read_resource(
    uri: Annotated[str, typer.Argument(help="As the list has it: CONNECTOR+ADDRESS.", show_default=False)],
    thread: Thread = None,
    as_json: AsJson = False,
) -> None:
    """Write a resource to stdout. Bytes that are no text are written to a file or a pipe only.

    \b
    dragoman resources read notes+note:///today
    dragoman resources read files+file:///logo.png > logo.png
    """
    path = path_of("resources", "read")
    request(as_json, _show_read, "GET", path, busy=f"reading {uri} …", uri=uri, thread=thread)


@resources.command("watch")
def watch_resources(
    uris: Annotated[
        list[str],
        typer.Argument(metavar="ADDRESS", help="As the list has it: CONNECTOR+ADDRESS.", show_default=False),
    ],
    thread: Thread = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document per line.")] = False,
) -> None:
    """Print the address of a resource whenever its server says that it changed, until Ctrl-C.

    \b
    dragoman resources watch notes+note:///today
    dragoman resources watch notes+note:///today files+file:///todo.md --json
    dragoman resources watch notes+note:///today |
      while read -r address; do dragoman resources read "$address"; done

    Refused at once where a server does not tell of changes. Ends with 1 when the service stops.
    """
    with session(as_json) as (door, screen):
        with ExitStack() as stack:
            with screen.busy("asking the servers …"):
                path = path_of("resources", "updates")
                lines = stack.enter_context(door.follow(path, uri=uris, thread=thread))
            screen.note(f"watching {', '.join(uris)} (Ctrl-C ends it)")
            for _, update in events_in(lines):
                print(json.dumps(update) if as_json else cleaned(update["uri"]), flush=True)
        raise Unreachable("the service ended, and the watch with it", hint="start it again: dragoman serve")


@prompts.command("list")
def list_prompts(connector: Connector = None, thread: Thread = None, as_json: AsJson = False) -> None:
    """List the prompts of the servers, with their arguments.

    \b
    dragoman prompts list
    dragoman prompts list notes
    """

    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        found = answer["prompts"]
        screen.show(_prompt_table(found)) if found else screen.note("no server has a prompt")
        _show_missing(screen, answer)

    path = path_of("prompts")
    request(as_json, show, "GET", path, busy="asking the servers …", connector=connector, thread=thread)


@prompts.command("get")
def get_prompt(
    name: Annotated[str, typer.Argument(help="As the list has it: CONNECTOR__NAME.", show_default=False)],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="What it is filled with.")
    ] = None,
    thread: Thread = None,
    as_json: AsJson = False,
) -> None:
    """Write a prompt to stdout, with its arguments in it.

    \b
    dragoman prompts get notes__summary topic=tea
    dragoman prompts get notes__summary topic=tea | dragoman ask -
    """
    try:
        arguments = dict(split_words(words or []))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    body = {"arguments": arguments}
    request(
        as_json, _show_prompt, "POST", path_of("prompts", name), body, busy=f"asking {name} …", thread=thread
    )


@resources.command("complete")
def complete_resource(
    uri_template: Annotated[
        str, typer.Argument(help="As `resources templates` has it.", show_default=False, metavar="TEMPLATE")
    ],
    gap: Annotated[str, typer.Argument(help="The gap, and what it begins with.", metavar="GAP=[BEGIN]")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[GAP=VALUE]...", help="What other gaps are filled with.")
    ] = None,
    thread: Thread = None,
    as_json: AsJson = False,
) -> None:
    """Show what a server proposes for a gap of an address.

    \b
    dragoman resources complete 'books+book:///{title}' title=p
    """
    body = {"uri_template": uri_template, **_completed(gap, words)}
    _complete(as_json, path_of("resources", "complete"), body, thread)


@prompts.command("complete")
def complete_prompt(
    name: Annotated[str, typer.Argument(help="As the list has it: CONNECTOR__NAME.", show_default=False)],
    argument: Annotated[
        str, typer.Argument(help="The argument, and what it begins with.", metavar="KEY=[BEGIN]")
    ],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="What others are filled with.")
    ] = None,
    thread: Thread = None,
    as_json: AsJson = False,
) -> None:
    """Show what a server proposes for an argument of a prompt.

    \b
    dragoman prompts complete notes__summary topic=t
    """
    body = {"name": name, **_completed(argument, words)}
    _complete(as_json, path_of("prompts", "complete"), body, thread)


def _completed(asked: str, words: list[str] | None) -> dict[str, Any]:
    """`topic=t` asks for `topic`, which begins with `t`; so does `topic` alone, with nothing yet."""
    name, _, value = asked.partition("=")
    try:
        return {"argument": name, "value": value, "given": dict(split_words(words or []))}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _complete(as_json: bool, path: str, body: Mapping[str, Any], thread: str | None) -> None:
    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        for value in answer["values"]:
            screen.text(value)
        if not answer["values"]:
            screen.note("the server proposes nothing")

    request(as_json, show, "POST", path, body, busy="asking the server …", thread=thread)


def _resource_table(found: Iterable[Mapping[str, Any]], address: str) -> "Table":
    table = new_table("address", "name", "type", "description")
    for one in found:
        name = one["title"] or one["name"]
        table.add_row(*map(plain, (one[address], name, one["mime_type"] or "", one["description"])))
    return table


def _prompt_table(found: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("name", "arguments", "description")
    for one in found:
        arguments = [each["name"] if each["required"] else f"[{each['name']}]" for each in one["arguments"]]
        described = one["description"] or one["title"] or ""
        table.add_row(*map(plain, (one["name"], " ".join(arguments), described)))
    return table


def _show_missing(screen: Screen, answer: Mapping[str, Any]) -> None:
    for one in answer["missing"]:
        screen.note(f"without {one['connector']}: {one['message']}")


def _show_read(screen: Screen, answer: Mapping[str, Any]) -> None:
    for content in answer["contents"]:
        if content["text"] is not None:
            screen.text(content["text"])
        elif content["blob"] is not None and screen.is_terminal:
            kind = content["mime_type"] or "bytes"
            screen.note(f"{content['uri']} is {kind}, no text: write it to a file with > FILE")
        elif content["blob"] is not None:
            sys.stdout.flush()
            sys.stdout.buffer.write(b64decode(content["blob"]))
    if answer["handle"]:
        screen.note(
            f"this is a part of {answer['size']:,} bytes; the whole: dragoman results show {answer['handle']}"
        )


def _show_prompt(screen: Screen, answer: Mapping[str, Any]) -> None:
    """Who says it is told where there are several messages: else a pipe would pass it on."""
    messages = answer["messages"]
    for message in messages:
        content: dict[str, Any] = message["content"]
        resource: dict[str, Any] = content.get("resource") or {}
        if len(messages) > 1:
            screen.note(f"{message['role']}:")
        text = content.get("text") or resource.get("text")
        screen.text(text) if isinstance(text, str) else screen.note(f"[{content.get('type')}]")
