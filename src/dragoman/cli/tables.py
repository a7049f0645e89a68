"""How things look to a person: tables, cards, states as coloured chips, causes, times."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from dragoman.cli.screen import ago, milliseconds, plain

if TYPE_CHECKING:
    from rich.table import Table

Shown = Mapping[str, Any]
_COLOURS = {
    "connected": "green",
    "disconnected": "blue",
    "connecting": "yellow",
    "reconnecting": "yellow",
    "needs_auth": "magenta",
    "error": "red",
    "disabled": "bright_black",
    "ready": "green",
    "changed": "yellow",
    "unavailable": "red",
}

_REACHED_BY = ("kind", "command", "args", "url", "openapi")  # told in one line


def chip(state: str) -> str:
    """A state with its colour. Blue is at rest: a connection opens when it is needed."""
    colour = _COLOURS.get(state, "white")
    return f"[{colour}]●[/] [{colour}]{plain(state)}[/]"


def state_of(connector: Shown) -> str:
    return "disabled" if not connector["enabled"] else str(connector["status"]["state"])


def connectors_table(connectors: Iterable[Shown]) -> "Table":
    names = ("connector", "of", "state", "tools", "calls", "p50", "how it is reached", "what is wrong")
    table = new_table(*names, right=("tools", "calls", "p50"))
    for connector in connectors:
        metrics = connector["metrics"]
        table.add_row(
            f"[bold]{plain(connector['slug'])}[/]",
            f"[dim]{plain(connector['tier'])}[/]",
            chip(state_of(connector)),
            str(connector["tools"])
            + ("" if connector["catalog"] == "ready" else f" ({connector['catalog']})"),
            str(metrics["calls"]),
            milliseconds(metrics["p50_ms"]),
            plain(reached_by(connector), 60),
            trouble_of(connector["status"]),
        )
    return table


def reached_by(connector: Shown) -> str:
    configuration = connector["configuration"]
    if configuration.get("url"):
        return f"{connector['transport']} {configuration['url']}"
    if configuration.get("command"):
        return " ".join([configuration["command"], *configuration["args"]])
    if configuration.get("openapi"):
        return f"openapi {configuration['openapi']}"
    return connector["description"]


def trouble_of(status: Shown) -> str:
    """The cause, and when it is tried again."""
    if not status["cause"] or status["state"] == "connected":
        return ""
    text = f"[red]{plain(status['cause'], 200)}[/]"
    if status["next_attempt"]:
        text += f" [dim](attempt {status['attempt']}; next {ago(status['next_attempt'])})[/]"
    return text


def connector_card(connector: Shown) -> "Table":
    status, metrics = connector["status"], connector["metrics"]
    card = new_card()
    card.add_row("connector", f"[bold]{plain(connector['slug'])}[/] {plain(connector['description'])}")
    card.add_row("state", f"{chip(state_of(connector))} [dim]{ago(status['since'])}[/]")
    if trouble := trouble_of(status):
        card.add_row("cause", trouble)
        if status["hint"]:
            card.add_row("hint", plain(status["hint"]))
    card.add_row("reached by", plain(reached_by(connector)))
    if box := connector["box"]:
        card.add_row("box", plain(box["text"]))
    for name, value in _settings_of(connector):
        card.add_row(name, plain(value))
    card.add_row("tools", f"{connector['tools']} [dim]({connector['catalog']})[/]")
    for skipped in connector["skipped"]:
        card.add_row("skipped", f"[yellow]{plain(skipped)}[/]")
    card.add_row("calls", _numbers(metrics))
    if metrics["last_error"]:
        card.add_row(
            "last error",
            f"[red]{plain(metrics['last_error'], 300)}[/] [dim]{ago(metrics['last_error_at'])}[/]",
        )
    for line in status["stderr"][-8:]:
        card.add_row("stderr", f"[dim]{plain(line, 300)}[/]")
    return card


def _settings_of(connector: Shown) -> Iterable[tuple[str, str]]:
    """What the server says of itself, and the settings that somebody chose."""
    from dragoman.connector import Configuration
    from dragoman.setting import settings_of

    server: Shown = connector["server"] or {}
    if server:
        era = f", era {connector['era']}" if connector["era"] else ""
        yield "server", f"{server.get('name', '')} {server.get('version', '')}{era}"
    if connector["aliases"]:
        yield "also called", ", ".join(connector["aliases"])
    if connector["secrets"]:
        yield "secrets", ", ".join(connector["secrets"]) + " (encrypted)"
    for one in settings_of(Configuration):
        value = one.found_in(connector["configuration"])
        if one.is_chosen(value) and one.name not in _REACHED_BY and not one.setting.derived:
            yield one.name, one.text(value)


def _numbers(metrics: Shown) -> str:
    if not metrics["calls"]:
        return "none yet"
    reuse = "" if metrics["reuse_rate"] is None else f", {metrics['reuse_rate']:.0%} on an open connection"
    return (
        f"{metrics['calls']} [dim](last {ago(metrics['last_call_at'])})[/], "
        f"{metrics['failed']} failed, p50 {milliseconds(metrics['p50_ms'])}, "
        f"p95 {milliseconds(metrics['p95_ms'])}, {metrics['reconnects']} reconnects{reuse}"
    )


def tools_table(tools: Iterable[Shown]) -> "Table":
    table = new_table("tool", "state", "effect", "description")
    for tool in tools:
        table.add_row(
            f"[bold]{plain(tool['name'])}[/]",
            chip(tool["state"]),
            effect_of(tool["annotations"]),
            plain(tool["description"] or tool["title"] or "", 90),
        )
    return table


def footprint_table(connectors: Iterable[Shown]) -> "Table":
    table = new_table("connector", "tools", "tokens", "in view")
    for one in connectors:
        seen = f"{one['tools_in_view']:,} tools, {one['tokens_in_view']:,} tokens"
        table.add_row(
            f"[bold]{plain(one['connector'])}[/]",
            f"{one['tools']:,}",
            f"{one['tokens']:,}",
            seen if one["tools_in_view"] else "[dim]deferred[/]",
        )
    return table


def effect_of(marks: Shown) -> str:
    """What the tool says of itself; saying nothing is not the same as harmless."""
    if marks["read_only"]:
        return "[green]reads[/]"
    if marks["destructive"]:
        return "[red]destructive[/]"
    return "[yellow]writes[/]" if marks["read_only"] is False else "[dim]not said[/]"


def tool_card(tool: Shown) -> "Table":
    card = new_card()
    card.add_row("tool", f"[bold]{plain(tool['name'])}[/]  [dim]also {plain(tool['alias'])}[/]")
    card.add_row("connector", plain(tool["connector"]))
    card.add_row("state", f"{chip(tool['state'])}, {effect_of(tool['annotations'])}")
    if tool["cause"]:
        card.add_row("because", plain(tool["cause"]))
    version = str(tool["version"])
    if tool["accepted_version"] != tool["version"]:
        version += f" [yellow](accepted: {tool['accepted_version']})[/]"
    card.add_row("version", f"{version} [dim]{tool['fingerprint'][:12]}[/]")
    card.add_row("tokens", f"{tool['tokens']:,}")
    for line in (tool["description"] or "").strip().splitlines()[:40]:
        card.add_row("", plain(line))
    return card


def arguments_table(schema: Shown) -> "Table | None":
    properties: Shown = schema.get("properties") or {}
    if not properties:
        return None
    table = new_table("argument", "type", "", "description")
    required: list[Any] = schema.get("required") or []
    for name, rule in properties.items():
        wanted: Shown = cast("Shown", rule) if isinstance(rule, dict) else {}
        table.add_row(
            f"[bold]{plain(name)}[/]",
            plain(_type_of(wanted)),
            "[red]required[/]" if name in required else "[dim]optional[/]",
            plain(str(wanted.get("description", "")), 120),
        )
    return table


def _type_of(wanted: Shown) -> str:
    if options := wanted.get("enum"):
        return " | ".join(str(option) for option in options[:6])
    kind = wanted.get("type")
    if kind is None:
        branches: list[Shown] = wanted.get("anyOf") or wanted.get("oneOf") or []
        return " | ".join(_type_of(branch) for branch in branches) or "any"
    kind = " | ".join(map(str, cast("list[Any]", kind))) if isinstance(kind, list) else str(kind)
    return f"{kind} ({wanted['format']})" if wanted.get("format") else kind


def calls_table(calls: Iterable[Shown]) -> "Table":
    table = new_table("when", "tool", "outcome", "took", "message")
    for call in calls:
        outcome = "[green]✓[/]" if call["ok"] else f"[red]✗ {plain(call['code'] or '')}[/]"
        took = milliseconds(call["duration_ms"])
        table.add_row(
            ago(call["started_at"]), plain(call["tool"]), outcome, took, plain(call["message"] or "", 90)
        )
    return table


def new_table(*names: str, right: Collection[str] = ()) -> "Table":
    """With a column for each name; numbers stand on the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold", justify="right" if name in right else "left")
    return table


def new_card() -> "Table":
    """For one thing: a label and a value on each line."""
    from rich.table import Table

    card = Table.grid(padding=(0, 2))
    card.add_column(style="dim", justify="right")
    card.add_column(overflow="fold")
    return card
