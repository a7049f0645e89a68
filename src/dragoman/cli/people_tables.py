"""How workspaces, users, keys and oneself look to a person."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dragoman.cli.screen import ago, plain
from dragoman.cli.tables import new_card, new_table

if TYPE_CHECKING:
    from rich.table import Table

Shown = Mapping[str, Any]


def workspaces_table(workspaces: Iterable[Shown]) -> "Table":
    table = new_table("workspace", "id", "approval", "limits", "made")
    for one in workspaces:
        table.add_row(
            f"[bold]{plain(one['name'])}[/]",
            plain(one["id"]),
            plain(one["approval"]),
            limits_of(one["limits"]),
            ago(one["created_at"]),
        )
    return table


def users_table(users: Iterable[Shown]) -> "Table":
    table = new_table("user", "id", "role", "state", "capabilities", "limits", "made")
    for one in users:
        table.add_row(
            f"[bold]{plain(one['name'])}[/]",
            plain(one["id"]),
            f"[magenta]{plain(one['role'])}[/]" if one["role"] == "admin" else plain(one["role"]),
            "[green]● active[/]" if one["is_active"] else "[red]● kept out[/]",
            "all" if one["role"] == "admin" else plain(", ".join(one["capabilities"]) or "none", 60),
            limits_of(one["limits"]),
            ago(one["created_at"]),
        )
    return table


def keys_table(keys: Iterable[Shown]) -> "Table":
    table = new_table("key", "id", "begins with", "user", "scopes", "state", "last used")
    for one in keys:
        way = "" if one["way"] == "direct" else f" [dim]({plain(one['way'])})[/]"
        table.add_row(
            f"[bold]{plain(one['name'])}[/]{way}",
            plain(one["id"]),
            plain(one["hint"]),
            plain(one["user"]),
            plain(", ".join(one["scopes"])),
            state_of(one),
            ago(one["last_used_at"]) or "[dim]never[/]",
        )
    return table


def clients_table(clients: Iterable[Shown]) -> "Table":
    table = new_table("client", "id", "user", "may use", "state", "last used")
    for one in clients:
        table.add_row(
            f"[bold]{plain(one['name'])}[/] [dim]{plain(one['host'])}[/]",
            plain(one["id"]),
            plain(one["user"]),
            _may_use(one),
            state_of(one),
            ago(one["last_used_at"]) or "[dim]never[/]",
        )
    return table


def client_card(one: Shown) -> "Table":
    card = new_card()
    card.add_row("client", f"[bold]{plain(one['name'])}[/] [dim]{plain(one['id'])}[/]")
    card.add_row("asks from", plain(one["host"]) or "[dim]a program that nobody vouches for[/]")
    card.add_row("returns to", plain(one["redirect"]))
    card.add_row("for", plain(one["resource"]))
    card.add_row("may use", _may_use(one))
    card.add_row("limits", limits_of(one["limits"]))
    card.add_row("state", state_of(one))
    card.add_row("last used", ago(one["last_used_at"]) or "[dim]never[/]")
    return card


def _may_use(client: Shown) -> str:
    slugs = client["connectors"]
    what = "all connectors" if slugs is None else plain(", ".join(slugs)) or "nothing"
    return f"{what} [dim]{'read only' if client['only_reads'] else 'read and change'}[/]"


def state_of(key: Shown) -> str:
    if key["revoked_at"]:
        return f"[red]● revoked[/] [dim]{ago(key['revoked_at'])}[/]"
    if not key["expires_at"]:
        return "[green]● good[/]"
    is_over = datetime.fromisoformat(key["expires_at"]) <= datetime.now(UTC)
    colour, word = ("red", "expired") if is_over else ("green", "expires")
    return f"[{colour}]● {word}[/] [dim]{ago(key['expires_at'])}[/]"


def me_card(me: Shown) -> "Table":
    card = new_card()
    for label, what in (("user", me["user"]), ("workspace", me["workspace"])):
        card.add_row(label, f"[bold]{plain(what['name'])}[/] [dim]{plain(what['id'])}[/]")
    card.add_row("role", plain(me["role"]))
    card.add_row("scopes", plain(", ".join(me["scopes"])))
    if me["way"] != "direct":
        card.add_row("way", plain(me["way"]))
    for grant in me["grants"]:
        card.add_row("may use", plain(", ".join(grant) or "nothing", 300))
    card.add_row("limits", limits_of(me["limits"]))
    return card


def limits_of(limits: Shown) -> str:
    given = [f"{name} {value:g}" for name, value in limits.items() if value is not None]
    return plain(", ".join(given)) if given else "[dim]none[/]"
