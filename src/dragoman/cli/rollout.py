"""`dragoman rollout …`: how far the agents of connectors are rolled out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.run_lines import spent
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, request
from dragoman.cli.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    no_args_is_help=True, help="Who reaches connectors through their agents; for who runs the installation."
)
_STATES = {"on": "on", "off": "off", "rolled_back": "switched off by itself"}


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """Show both arms with their figures, when the new one is switched off, and the last rollback.

    \b
    dragoman rollout status
    dragoman rollout status --json
    """
    request(as_json, _show, "GET", path_of("rollout"))


@app.command("set")
def set_rollout(
    share: Annotated[
        float | None, typer.Option(min=0, max=100, help="Percent of all users.", show_default=False)
    ] = None,
    workspace: Annotated[
        list[str] | None,
        typer.Option(help="All users of this workspace, by id; again for more.", show_default=False),
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(help="This user, by id or as WORKSPACE/USER; again for more.", show_default=False),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Nobody.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say who goes through the agents of connectors. What is left out stays as it is.

    Effective at once, in every process. Counting begins anew; after a rollback this is how to go on.

    \b
    dragoman rollout set --workspace wsp_1 --user usr_2
    dragoman rollout set --share 25
    dragoman rollout set --off
    """
    if off and (share is not None or workspace or user):
        raise typer.BadParameter("--off goes alone")
    wish: dict[str, Any] = {"share": share, "workspaces": workspace or None, "users": user or None}
    if off:
        wish = {"share": 0, "workspaces": [], "users": []}
    body = {name: value for name, value in wish.items() if value is not None}
    request(as_json, _show, "PUT", path_of("rollout"), body)


@app.command("reset")
def reset(as_json: AsJson = False) -> None:
    """Go back to what the environment says (USE_MCP_AGENTS, DRAGOMAN_ROLLOUT_…), and count anew."""
    request(as_json, _show, "DELETE", path_of("rollout"))


def _show(screen: Screen, found: Mapping[str, Any]) -> None:
    plan, limits = found["plan"], found["thresholds"]
    is_unset = plan["share"] is None and not plan["workspaces"] and not plan["users"]
    state = "on" if is_unset else _STATES[found["state"]]
    who = "all users, compared with nobody" if is_unset else _who(plan)
    screen.text(f"connector agents: {state}; {who}, set by {_source(found)}")
    screen.show(_table(found["arms"]))
    screen.note(
        f"switched off when errors exceed {limits['errors']:g} % or the mean latency that of direct by"
        f" {limits['slower']:g} %"
    )
    screen.note(
        f"judged by the last {limits['runs']} runs of each arm within {limits['hours']:g} hours, at least"
        f" {limits['sample']} of each"
    )
    for note in found["notes"]:
        screen.note(note)
    if rollback := found["rollback"]:
        over = "" if rollback["is_in_force"] else " (set anew since)"
        screen.text(f"last rollback {ago(rollback['at'])}: {plain(rollback['reason'])}{over}")
        if rollback["is_in_force"]:
            screen.note("go on with: dragoman rollout set")
    else:
        screen.note("there has been no rollback")


def _who(plan: Mapping[str, Any]) -> str:
    named = [*plan["workspaces"], *plan["users"]]
    first = f"{', '.join(map(plain, named[:10]))}{' …' if len(named) > 10 else ''} first, " if named else ""
    return f"{first}{plan['share'] or 0:g} % of users"


def _source(found: Mapping[str, Any]) -> str:
    if found["source"] == "environment":
        return "the environment"
    return f"{plain(found['set_by'])} {ago(found['set_at'])}"


def _table(arms: Mapping[str, Any]) -> "Table":
    figures = ("runs", "errors", "mean", "p95", "tokens", "cost", "thumbs")
    table = new_table("arm", *figures, right=figures)
    for arm in ("agents", "direct"):
        one = arms[arm]
        table.add_row(
            arm,
            f"{one['runs']:,}",
            f"{one['errors']} ({one['error_share']:.1f} %)",
            f"{one['latency_ms']:,.0f} ms",
            f"{one['latency_p95_ms']:,.0f} ms",
            f"{one['tokens']:,.0f}",
            spent(one),
            f"+{one['thumbs_up']} −{one['thumbs_down']}",
        )
    return table
