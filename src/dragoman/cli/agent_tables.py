"""How agents look to a person: tables and cards."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.cli.run_lines import spent
from dragoman.cli.screen import ago, cleaned, milliseconds, plain
from dragoman.cli.tables import new_card, new_table

if TYPE_CHECKING:
    from rich.table import Table

Shown = Mapping[str, Any]
# What a card says in words of its own; every other setting that somebody chose has a line.
_SAID = ("description", "instructions", "model", "fallbacks", "capabilities", "connectors")


def agents_table(agents: Iterable[Shown]) -> "Table":
    names = ("agent", "kind", "state", "works with", "model", "runs", "cost", "last used", "what it does")
    table = new_table(*names, right=("runs", "cost"))
    for agent in agents:
        numbers = agent["numbers"]
        table.add_row(
            f"[bold]{plain(agent['name'])}[/]",
            plain(agent["kind"]),
            state_of(agent),
            works_with(agent),
            plain(agent["model"] or "") or "[dim]default[/]",
            f"{numbers['runs']:,}" + (f" [red]({numbers['errors']:,} ✗)[/]" if numbers["errors"] else ""),
            spent(numbers) if numbers["cost"] or numbers["unpriced"] else "",
            ago(numbers["last_used"]),
            plain(agent["description"], 60) + "".join(f" [yellow]{plain(one)}[/]" for one in agent["notes"]),
        )
    return table


def state_of(agent: Shown) -> str:
    return "[green]● active[/]" if agent["status"] == "active" else "[bright_black]● stopped[/]"


def works_with(agent: Shown) -> str:
    if agent["connectors"] is None:
        return "[dim]all that are active[/]"
    return plain(", ".join(agent["connectors"])) or "[dim]nothing yet[/]"


def agent_card(agent: Shown) -> "Table":
    from rich.text import Text

    from dragoman.agent import AgentProfile
    from dragoman.setting import people_set

    card = new_card()
    whose = "everybody's" if agent["shared"] else "yours"
    card.add_row("agent", f"[bold]{plain(agent['name'])}[/] [dim]{plain(agent['kind'])}, {whose}[/]")
    card.add_row("state", state_of(agent))
    if agent["description"]:
        card.add_row("does", plain(agent["description"]))
    card.add_row("works with", works_with(agent))
    if agent["capabilities"] is not None:
        card.add_row("may use", plain(", ".join(agent["capabilities"])) or "nothing")
    fallbacks = f" [dim]then {plain(', '.join(agent['fallbacks']))}[/]" if agent["fallbacks"] else ""
    card.add_row("model", (plain(agent["model"] or "") or "[dim]the default[/]") + fallbacks)
    for one in people_set(AgentProfile):
        if one.name not in _SAID and one.name in agent and one.is_chosen(one.found_in(agent)):
            card.add_row(one.label.lower(), plain(one.text(one.found_in(agent))))
    if agent["instructions"]:
        card.add_row("is told", Text(cleaned(agent["instructions"])))
    for note in agent["notes"]:
        card.add_row("note", f"[yellow]{plain(note)}[/]")
    card.add_row("has done", numbers_of(agent["numbers"]))
    return card


def numbers_of(numbers: Shown) -> str:
    if not numbers["runs"]:
        return "nothing yet"
    return (
        f"{numbers['runs']:,} runs [dim](last {ago(numbers['last_used'])})[/], {numbers['errors']:,} failed,"
        f" {numbers['calls']:,} calls, {milliseconds(numbers['latency_ms'])} a run,"
        f" {numbers['input_tokens']:,} + {numbers['output_tokens']:,} tokens, cost {spent(numbers)}"
    )
