"""How what happens in a run reads in a line, as Rich markup: calls, delegations, plans, numbers. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from dragoman.cli.screen import milliseconds, plain
from dragoman.names import dotted_name

Facts = Mapping[str, Any]
_LONGEST = 120
_DELEGATIONS = {"ask_agent": ("agent", "request"), "query_mcp_connector": ("connector_id", "query")}
_SILENT = frozenset({"ask_person", "state_plan"})  # a question and a plan are shown as such


def is_shown(tool: str) -> bool:
    return tool not in _SILENT


def tells_end(data: Facts) -> bool:
    """Of what went well, a delegation has the end of its own run."""
    return not data["ok"] or data["tool"] not in (*_SILENT, *_DELEGATIONS)


def title_of(data: Facts) -> str:
    """What has no title is called by its name: a tool `email.send`, what an agent has anyhow in words."""
    name = str(data.get("tool") or "")
    title = str(data.get("title") or name)
    shown = dotted_name(title)
    return title.replace("_", " ").capitalize() if title == shown == name else shown


def call_started(data: Facts) -> str:
    arguments = data["arguments"]
    if data["tool"] in _DELEGATIONS and isinstance(arguments, Mapping):
        whom, what = (str(cast("Facts", arguments).get(name, "")) for name in _DELEGATIONS[data["tool"]])
        return f"[cyan]→[/] [bold]@{plain(whom.removeprefix('@'))}[/] {plain(what, _LONGEST)}"
    return f"[cyan]→[/] {plain(title_of(data))} [dim]{plain(brief(data['arguments']), _LONGEST)}[/]"


def call_finished(data: Facts, title: str) -> str:
    took = "" if data["duration_ms"] is None else f" [dim]{milliseconds(data['duration_ms'])}[/]"
    if data["ok"]:
        return f"[green]✓[/] {plain(title)}{took}"
    why = plain(brief(data["preview"]), _LONGEST)
    code = plain(str(data["code"] or "failed"))
    return f"[red]✗[/] {plain(title)} [red]{code}[/]{took} [dim]{why}[/]"


def progress(data: Facts, title: str) -> str:
    done, total = data.get("progress"), data.get("total")
    share = f" {done / total:.0%}" if done is not None and total else ""
    return f"[dim]… {plain(title)}{share} {plain(str(data.get('message') or ''), _LONGEST)}[/]"


def plan_lines(steps: Iterable[Facts]) -> list[str]:
    """`1. read-emails: to see what came · after 2, 3`"""
    lines: list[str] = []
    for at, step in enumerate(steps, 1):
        reason = f": {step['reason']}" if step.get("reason") else ""
        after = ", ".join(map(str, step.get("depends_on") or ()))
        text = f"{dotted_name(str(step.get('tool')))}{reason}" + (f" · after {after}" if after else "")
        lines.append(f"[dim]{at}. {plain(text, _LONGEST)}[/]")
    return lines


def source(context: Facts) -> str:
    where = f" {context['uri']}" if context.get("uri") else ""
    excerpt = " ".join(str(context.get("excerpt") or "").split())
    return plain(f"[{context['id']}] {dotted_name(context['tool'])}{where}: {excerpt}", _LONGEST)


def ending(finished: Facts, seconds: float | None) -> list[str]:
    """Below an answer: what it cites, and what it took."""
    cited = [source(one) for one in finished.get("contexts", ())]
    return [*cited, *filter(None, [usage_line(finished, seconds)])]


def usage_line(finished: Facts, seconds: float | None = None) -> str:
    """`openai:gpt-5 · 2 requests, 1 call · 1,234 + 56 tokens · $0.0021 · 800 tokens saved · 1.3 s`

    Empty when no model was asked.
    """
    usage: Facts = finished["usage"]
    if not usage["requests"]:
        return ""
    parts = [finished.get("model") or ""]
    counts = [_count(usage["requests"], "request"), _count(usage["calls"], "call")]
    parts.append(", ".join(filter(None, counts)))
    if usage["input_tokens"] or usage["output_tokens"]:
        parts.append(f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens")
    if usage["cost"]:
        parts.append(money(usage["cost"]))
    if usage["tokens_saved"]:
        parts.append(f"{usage['tokens_saved']:,} tokens saved")
    if seconds is not None:
        parts.append(f"{seconds:.1f} s")
    return plain(" · ".join(filter(None, parts)))


def money(dollars: float) -> str:
    return f"${dollars:.4f}" if dollars < 1 else f"${dollars:,.2f}"


def spent(used: Facts) -> str:
    """What work cost; a price that nobody knows is no price of nothing."""
    if not used["unpriced"]:
        return money(used["cost"])
    return f"over {money(used['cost'])}" if used["cost"] else "unknown"


def brief(value: Any) -> str:
    """A JSON value the way people write it: `{limit: 2, to: ada}`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        table = cast("Facts", value)
        return "{" + ", ".join(f"{name}: {_inner(one)}" for name, one in table.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inner(one) for one in cast("list[Any]", value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _inner(value: Any) -> str:
    if isinstance(value, str) and (not value or any(sign in value for sign in ",:{}[]\n")):
        return json.dumps(value, ensure_ascii=False)
    return brief(value)


def _count(number: int, noun: str) -> str:
    return "" if not number else f"{number:,} {noun}{'s' if number != 1 else ''}"
