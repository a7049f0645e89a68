"""Runs as tables, and one run as a list of moments that a person can follow."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dragoman.cli.run_lines import brief, money, plan_lines, usage_line
from dragoman.cli.screen import ago, milliseconds, plain
from dragoman.cli.tables import new_table
from dragoman.names import dotted_name

if TYPE_CHECKING:
    from rich.table import Table

Facts = Mapping[str, Any]
_COLOURS = {
    "queued": "blue",
    "running": "yellow",
    "waiting": "magenta",
    "done": "green",
    "failed": "red",
    "cancelled": "bright_black",
}
_PREVIEW = 400


def status_chip(status: str) -> str:
    colour = _COLOURS.get(status, "white")
    return f"[{colour}]● {plain(status)}[/]"


def runs_table(runs: Iterable[Facts]) -> "Table":
    figures = ("calls", "tokens", "cost", "took")
    table = new_table("run", "began", "agent", "status", "request", *figures, right=figures)
    for run in runs:
        usage = run["usage"]
        table.add_row(
            f"{'  └ ' if run['parent'] else ''}{plain(run['id'])}",
            ago(run["created_at"]),
            f"[bold]{plain(run['agent'] or 'several')}[/]",
            status_chip(run["status"]),
            plain(run["request"], 60),
            f"{usage['calls']:,}",
            f"{usage['input_tokens'] + usage['output_tokens']:,}",
            money(usage["cost"]) if usage["cost"] else "",
            milliseconds(_between(run["started_at"], run["finished_at"])),
        )
    return table


def prompt_text(prompts: Iterable[Facts]) -> str:
    """All of it, in the order in which it was sent."""
    parts: list[str] = []
    for prompt in prompts:
        parts.append(f"━━ @{prompt['agent']} · {prompt['run']} · {prompt['model'] or 'no model'}")
        parts += [f"── instructions\n{text}" for text in prompt["instructions"]]
        parts.append(f"── functions\n{', '.join(prompt['functions']) or 'none'}")
        if prompt["earlier"]:
            parts.append(f"── {prompt['earlier']} earlier messages of the thread")
        parts += [
            f"── {' '.join(filter(None, [one['role'], one['name']]))}\n{one['text']}"
            for one in prompt["messages"]
        ]
    return "\n\n".join(parts) or "No model was asked."


def timeline_table(timeline: Facts) -> "Table":
    """When, what, and below it what went in and came out; what a call started stands in its place."""
    from rich.table import Table

    run, steps = timeline["run"], timeline["steps"]
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("", "", _head(run))
    grid.add_row("", "[dim]»[/]", plain(run["request"], _PREVIEW))
    start = run["started_at"] or run["created_at"]
    for step in steps:
        details = step["details"]
        grid.add_row(_offset(start, step["time"]), _sign(step["kind"], details), _title(step))
        for label, text in _below(step["kind"], details):
            grid.add_row("", "", f"[dim]{label}[/] {text}" if label else text)
        for child in step["runs"]:
            grid.add_row("", "[dim]│[/]", timeline_table(child))
    return grid


def _head(run: Facts) -> str:
    facts = [f"[bold]@{plain(run['agent'])}[/]" if run["agent"] else "[bold]several agents[/]"]
    facts.append(status_chip(run["status"]))
    facts += [f"[dim]{plain(word)}[/]" for word in (run["id"], run["exposure"] or "") if word]
    return " ".join(facts)


def _title(step: Facts) -> str:
    details, title = step["details"], plain(step["title"], 300)
    match step["kind"]:
        case "model":
            tokens = f"{details['input_tokens']:,} + {details['output_tokens']:,} tokens"
            cost = f", {money(details['cost'])}" if details["cost"] else ""
            return f"{title} [dim]{tokens}{cost}, {milliseconds(details['duration_ms'])}[/]"
        case "call":
            tool = dotted_name(str(details.get("tool") or ""))
            name = plain(dotted_name(str(details.get("title") or tool)))
            of = f" [dim]{plain(tool)}[/]"
            return f"[bold]{name}[/]{of} {_outcome(details)}"
        case "approval" | "question":
            waited = details.get("waited_ms")
            answered = f"answered after {milliseconds(waited)}" if waited is not None else details["status"]
            return f"{title} [dim]{plain(str(answered))}[/]"
        case _:
            return title


def _outcome(details: Facts) -> str:
    took = milliseconds(details["duration_ms"]) if details.get("duration_ms") is not None else ""
    again = f", attempt {details['attempts']}" if details.get("attempts", 1) > 1 else ""
    if details["status"] == "done":
        return f"[dim]{took}{again}[/]"
    what = plain(f"{details['status']} {details.get('code') or ''}")
    return f"[red]{what}[/] [dim]{took}{again}[/]"


def _sign(kind: str, details: Facts) -> str:
    if kind == "call":
        signs = {"done": "[green]✓[/]", "running": "[yellow]…[/]"}
        return signs.get(details["status"], "[red]✗[/]")
    if kind == "finished":
        return "[green]■[/]" if details["status"] == "done" else "[red]■[/]"
    return {
        "model": "[cyan]◆[/]",
        "notice": "[yellow]![/]",
        "approval": "[yellow]?[/]",
        "question": "[yellow]?[/]",
    }.get(kind, "[dim]·[/]")


def _below(kind: str, details: Facts) -> Iterator[tuple[str, str]]:
    match kind:
        case "offered":
            changed = details.get("added") is not None
            if not changed:
                yield "", f"[dim]{plain(', '.join(details['tools']), 600)}[/]"
            for label in ("added", "removed"):
                if details.get(label):
                    yield label, plain(", ".join(details[label]), _PREVIEW)
        case "model" | "retry":
            if text := details.get("text") or details.get("reason"):
                yield "said" if kind == "model" else "because", plain(text, _PREVIEW)
        case "plan":
            for line in plan_lines(details["steps"]):
                yield "", line
        case "call":
            yield "sent", plain(brief(details.get("arguments") or {}), _PREVIEW)
            if (preview := details.get("preview")) is not None:
                yield "came back", plain(brief(preview), _PREVIEW)
            for text in details.get("warnings") or ():
                yield "note", plain(text, _PREVIEW)
            if details.get("tokens_saved"):
                yield "saved", f"{details['tokens_saved']:,} tokens"
        case "note":
            yield "", plain(brief(details), _PREVIEW)
        case "finished":
            if error := details.get("error"):
                yield (
                    "error",
                    f"[red]{plain(str(error.get('message')))}[/] {plain(str(error.get('hint') or ''))}",
                )
            elif details.get("answer") and not details.get("model"):
                yield "answer", plain(details["answer"], _PREVIEW)
            seconds = None if details.get("duration_ms") is None else details["duration_ms"] / 1000
            yield "used", usage_line(details, seconds)
        case _:
            pass


def _offset(start: str, time: str) -> str:
    return "+" + milliseconds(max(0.0, _between(start, time) or 0.0))


def _between(start: str | None, end: str | None) -> float | None:
    if not start or not end:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000
