"""`dragoman questions …`: what agents, and servers in the middle of a call, want to know."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import split_words, typed
from dragoman.cli.door import path_of
from dragoman.cli.screen import ago, plain
from dragoman.cli.session import AsJson, request, rows, session
from dragoman.cli.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="What agents want to know from you before they go on.")
Shown = Mapping[str, Any]


@app.command("list")
def list_questions(
    status: Annotated[str, typer.Option(help="pending, answered, expired, cancelled or all.")] = "pending",
    thread: Annotated[str | None, typer.Option(help="Only those of this thread.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the questions that wait for an answer.

    \b
    dragoman questions list
    dragoman questions list --status all
    """
    none = "no question waits" if status == "pending" else f"there is no question ({status})"
    after = 'answer with: dragoman questions answer ID "…"' if status == "pending" else ""
    show = rows(_table, "questions", none, after)
    request(as_json, show, "GET", path_of("questions"), status=status, thread=thread)


@app.command("answer")
def answer(
    question: Annotated[str, typer.Argument(help="As `questions list` shows it.", show_default=False)],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="ANSWER...", help="A text; for fields NAME=VALUE each.", show_default=False),
    ] = None,
    decline: Annotated[bool, typer.Option("--decline", help="Will not answer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question; who asked goes on with it, or without.

    \b
    dragoman questions answer qst_4f… "to ada@example.com"
    dragoman questions answer qst_4f… size=3 colour=red
    dragoman questions answer qst_4f… 1 to=ada@example.com   (the first of several calls)
    dragoman questions answer qst_4f… --decline
    """
    with session(as_json) as (door, screen):
        found = door.ask("GET", path_of("questions", question))
        body = {"decline": True} if decline else {"answer": _given(words or [], found)}
        after = door.ask("POST", path_of("questions", question), body)
        if as_json:
            screen.data(after)
        elif after["root"] is None:
            screen.note(f"{after['connector']} has it")
        else:
            screen.note(f"{after['agent']} goes on; see: dragoman runs follow {after['root']}")


def _given(words: list[str], question: Shown) -> Any:
    if question["url"] is not None:
        return {}
    if not words:
        raise typer.BadParameter("write an answer, or --decline", param_hint="ANSWER")
    return _answer(words, question["fields"])


def _answer(words: list[str], fields: Shown | None) -> Any:
    calls: list[Shown] = [one for one in (fields or {}).get("oneOf", ()) if "properties" in one]
    if calls and words[0].isdecimal() and 1 <= int(words[0]) <= len(calls):
        chosen = calls[int(words[0]) - 1]["properties"]
        schema: Shown = chosen["arguments"]
        given: dict[str, Any] = {**(schema.get("default") or {}), **_answer(words[1:], schema)}
        return {"tool": chosen["tool"]["const"], "arguments": given}
    if fields is None or calls:
        return " ".join(words)
    try:
        return typed(split_words(words), fields)
    except ValueError as error:
        names = " ".join(f"{name}=…" for name in fields.get("properties", {}))
        raise typer.BadParameter(f"{error}; it wants: {names}", param_hint="ANSWER") from None


def _table(questions: Iterable[Shown]) -> "Table":
    table = new_table("id", "asked", "by", "question", "wants", "status", "until")
    for one in questions:
        fields: Shown = one["fields"] or {}
        titles = [one["title"] for one in fields.get("oneOf", ())]
        wants = one["url"] or " | ".join(titles) or ", ".join(fields.get("properties", {})) or "text"
        given = "" if one["answer"] is None else f" ({json.dumps(one['answer'], ensure_ascii=False)})"
        table.add_row(
            plain(one["id"]),
            ago(one["created_at"]),
            f"[bold]{plain(one['agent'])}[/]" if one["agent"] else f"server of {plain(one['connector'])}",
            plain(one["text"], 200),
            plain(wants),
            plain(one["status"] + given, 80),
            ago(one["expires_at"]) if one["status"] == "pending" else "",
        )
    return table
