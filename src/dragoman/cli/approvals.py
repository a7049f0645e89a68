"""`dragoman approvals …`: what waits for a yes, the answers, and what was allowed for longer."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, cleaned, plain
from dragoman.cli.session import AsJson, card, note, request, rows
from dragoman.cli.tables import effect_of, new_card, new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="What agents ask of you: look, answer, take back.")

Id = Annotated[str, typer.Argument(help="As `approvals list` shows it.", show_default=False)]
Shown = Mapping[str, Any]


@app.command("list")
def list_approvals(
    status: Annotated[
        str, typer.Option(help="pending, approved, used, refused, expired or all.")
    ] = "pending",
    as_json: AsJson = False,
) -> None:
    """List the questions that wait for an answer.

    \b
    dragoman approvals list
    dragoman approvals list --status all
    """
    none = "no question waits" if status == "pending" else f"there is no approval ({status})"
    after = "answer with: dragoman approvals answer ID once|thread|always|no"
    show = rows(_approvals_table, "approvals", none, after)
    request(as_json, show, "GET", path_of("approvals"), status=status)


@app.command("show")
def show(approval: Id, as_json: AsJson = False) -> None:
    """Show a question: the exact arguments, the tool, and who asks."""
    request(as_json, card(_card), "GET", path_of("approvals", approval))


@app.command("answer")
def answer(
    approval: Id,
    given: Annotated[
        str, typer.Argument(metavar="ANSWER", help="once, thread, always or no.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Answer a question. Look at it first: approvals show ID.

    \b
    once     this very call, with these arguments, one time
    thread   this tool for the rest of the conversation
    always   this tool, until its definition changes
    no       the call is refused
    """
    request(as_json, _show_answered, "POST", path_of("approvals", approval, "answer"), {"answer": given})


@app.command("allowed")
def allowed(as_json: AsJson = False) -> None:
    """List what you have allowed for longer than one call."""
    none, after = (
        "nothing is allowed for longer than one call",
        "take one back with: dragoman approvals withdraw ID",
    )
    request(as_json, rows(_allowed_table, "allowed", none, after), "GET", path_of("approvals", "allowed"))


@app.command("withdraw")
def withdraw(approval: Id, as_json: AsJson = False) -> None:
    """Take back what an answer allowed for longer: the next call asks again."""
    show = note("taken back: the next call asks again")
    path = path_of("approvals", "allowed", approval)
    request(as_json, show, "DELETE", path, data={"withdrawn": approval})


def _show_answered(screen: Screen, question: Shown) -> None:
    screen.note(f"{question['tool']}: answered with {question['answer']}")
    if question["status"] == "approved":
        screen.note(f"good for one call, and gone {ago(question['expires_at'])}")


def _approvals_table(approvals: list[Shown]) -> "Table":
    table = new_table("id", "asked", "tool", "effect", "by", "arguments", "status")
    for one in approvals:
        table.add_row(
            plain(one["id"]),
            ago(one["created_at"]),
            f"[bold]{plain(one['tool'])}[/]",
            effect_of(one["annotations"]),
            plain(_asker(one)),
            plain(json.dumps(one["arguments"], ensure_ascii=False), 80),
            plain(one["status"] if one["answer"] is None else f"{one['status']} ({one['answer']})"),
        )
    return table


def _allowed_table(allowed: list[Shown]) -> "Table":
    table = new_table("id", "tool", "for", "since")
    for one in allowed:
        scope = "every call of this version" if one["thread"] is None else f"the thread {one['thread']}"
        scope += f", through {one['key']}" if one["key"] else ""
        table.add_row(
            plain(one["approval"]), f"[bold]{plain(one['tool'])}[/]", plain(scope), ago(one["created_at"])
        )
    return table


def _card(question: Shown) -> "Table":
    from rich.text import Text

    grid = new_card()
    version = f"[dim]version {question['version']}[/]"
    grid.add_row(
        "tool", f"[bold]{plain(question['tool'])}[/] {version}, {effect_of(question['annotations'])}"
    )
    for line in (question["description"] or "").strip().splitlines()[:40]:
        grid.add_row("", plain(line))
    # Whole and as it is: a person says yes to exactly this.
    exact = cleaned(json.dumps(question["arguments"], indent=2, ensure_ascii=False))
    grid.add_row("arguments", Text(exact))
    grid.add_row("asked by", plain(_asker(question)) + f" [dim]{ago(question['created_at'])}[/]")
    grid.add_row("because", plain(question["reason"]))
    grid.add_row("status", plain(question["status"]))
    if question["answer"]:
        by = f"{question['answer']} by {question['answered_by']}"
        grid.add_row("answer", f"{plain(by)} [dim]{ago(question['answered_at'])}[/]")
    else:
        grid.add_row(
            "answers", f"{', '.join(question['answers'])} [dim]until {ago(question['expires_at'])}[/]"
        )
    return grid


def _asker(question: Shown) -> str:
    asker = f"agent {question['agent']}" if question["agent"] else f"by way of {question['way']}"
    thread = f", thread {question['thread']}" if question["thread"] else ""
    return f"{asker} for {question['user_name']}{thread}"
