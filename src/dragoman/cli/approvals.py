"""`dragoman approvals …`: what waits for a yes, the answers, and what was allowed for longer."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import ago, cleaned, plain
from dragoman.cli.session import AsJson, session
from dragoman.cli.tables import effect_of

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
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("approvals"), status=status)
        if as_json:
            screen.data(answer)
        elif answer["approvals"]:
            screen.show(_approvals_table(answer["approvals"]))
            screen.note("answer with: dragoman approvals answer ID once|thread|always|no")
        else:
            screen.note("no question waits" if status == "pending" else f"there is no approval ({status})")


@app.command("show")
def show(approval: Id, as_json: AsJson = False) -> None:
    """Show a question: the exact arguments, the tool, and who asks."""
    with session(as_json) as (door, screen):
        question = door.ask("GET", path_of("approvals", approval))
        screen.data(question) if as_json else screen.show(_card(question))


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
    with session(as_json) as (door, screen):
        question = door.ask("POST", path_of("approvals", approval, "answer"), {"answer": given})
        if as_json:
            return screen.data(question)
        screen.note(f"{question['tool']}: answered with {question['answer']}")
        if question["status"] == "approved":
            screen.note(f"good for one call, and gone {ago(question['expires_at'])}")
        return None


@app.command("allowed")
def allowed(as_json: AsJson = False) -> None:
    """List what you have allowed for longer than one call."""
    with session(as_json) as (door, screen):
        answer = door.ask("GET", path_of("approvals", "allowed"))
        if as_json:
            screen.data(answer)
        elif answer["allowed"]:
            screen.show(_allowed_table(answer["allowed"]))
            screen.note("take one back with: dragoman approvals withdraw ID")
        else:
            screen.note("nothing is allowed for longer than one call")


@app.command("withdraw")
def withdraw(approval: Id, as_json: AsJson = False) -> None:
    """Take back what an answer allowed for longer: the next call asks again."""
    with session(as_json) as (door, screen):
        door.ask("DELETE", path_of("approvals", "allowed", approval))
        if as_json:
            screen.data({"withdrawn": approval})
        else:
            screen.note("taken back: the next call asks again")


def _approvals_table(approvals: list[Shown]) -> "Table":
    table = _table("id", "asked", "tool", "effect", "by", "arguments", "status")
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
    table = _table("id", "tool", "for", "since")
    for one in allowed:
        scope = "every call of this version" if one["thread"] is None else f"the thread {one['thread']}"
        table.add_row(
            plain(one["approval"]), f"[bold]{plain(one['tool'])}[/]", plain(scope), ago(one["created_at"])
        )
    return table


def _card(question: Shown) -> "Table":
    from rich.table import Table
    from rich.text import Text

    card = Table.grid(padding=(0, 2))
    card.add_column(style="dim", justify="right")
    card.add_column(overflow="fold")
    version = f"[dim]version {question['version']}[/]"
    card.add_row(
        "tool", f"[bold]{plain(question['tool'])}[/] {version}, {effect_of(question['annotations'])}"
    )
    for line in (question["description"] or "").strip().splitlines()[:40]:
        card.add_row("", plain(line))
    # Whole and as it is: a person says yes to exactly this.
    exact = cleaned(json.dumps(question["arguments"], indent=2, ensure_ascii=False))
    card.add_row("arguments", Text(exact))
    card.add_row("asked by", plain(_asker(question)) + f" [dim]{ago(question['created_at'])}[/]")
    card.add_row("because", plain(question["reason"]))
    card.add_row("status", plain(question["status"]))
    if question["answer"]:
        by = f"{question['answer']} by {question['answered_by']}"
        card.add_row("answer", f"{plain(by)} [dim]{ago(question['answered_at'])}[/]")
    else:
        card.add_row(
            "answers", f"{', '.join(question['answers'])} [dim]until {ago(question['expires_at'])}[/]"
        )
    return card


def _asker(question: Shown) -> str:
    asker = f"agent {question['agent']}" if question["agent"] else f"by way of {question['way']}"
    thread = f", thread {question['thread']}" if question["thread"] else ""
    return f"{asker} for {question['user_name']}{thread}"


def _table(*names: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table
