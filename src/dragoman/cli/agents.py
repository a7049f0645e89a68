"""`dragoman agents …`: who works here, and with what."""

import sys
from typing import Annotated, Any

import typer

from dragoman.cli.agent_tables import agent_card, agents_table
from dragoman.cli.completion import names_of
from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, Show, Yes, card, confirm, request, rows, session
from dragoman.cli.setting_options import any_of, settings_of, with_changes, with_settings

app = typer.Typer(
    no_args_is_help=True,
    help="Agents: workers of your own, one for each connector, and the assistant.",
)

Name = Annotated[
    str,
    typer.Argument(
        help="The agent, with or without @.", show_default=False, autocompletion=names_of("agents")
    ),
]
Connectors = Annotated[
    list[str],
    typer.Argument(
        metavar="CONNECTOR...", help="By name.", show_default=False, autocompletion=names_of("connectors")
    ),
]


_SETTINGS = settings_of("agent", "Agent")


@app.command("list")
def list_agents(as_json: AsJson = False) -> None:
    """List the agents: the assistant, workers, and one for each connector."""
    request(as_json, rows(agents_table, "agents"), "GET", path_of("agents"))


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show an agent: its instructions, model, connectors, and what it has done."""
    request(as_json, card(agent_card), "GET", _path(name))


@with_settings(app, "create", _SETTINGS)
def create(
    name: Annotated[str, typer.Argument(help="As people mention it: @name.", show_default=False)],
    connectors: Annotated[
        list[str] | None, typer.Argument(metavar="[CONNECTOR]...", help="What it works with.")
    ] = None,
    shared: Annotated[bool, typer.Option("--shared", help="For everybody of the workspace.")] = False,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Create a worker. It is at work at once.

    \b
    dragoman agents create mailer email --description "reads and answers e-mail"
    dragoman agents create planner tasks email --model openai:gpt-5 --instructions - < job.md
    """
    body = {"name": name, "shared": shared, **_facts(given)}
    if connectors is not None:
        body["connectors"] = connectors

    def show(screen: Screen, agent: Any) -> None:
        screen.show(agent_card(agent))
        screen.note(f'talk to it: dragoman ask "@{agent["name"]} …"')

    request(as_json, show, "POST", path_of("agents"), body)


@with_changes(app, "update", _SETTINGS)
def update(name: Name, as_json: AsJson = False, *, given: dict[str, Any]) -> None:
    """Change an agent. Effective from its next step, in the middle of a conversation too.

    \b
    dragoman agents update mailer --model anthropic:claude-sonnet-4-5
    dragoman agents update assistant --instructions "Answer in Italian."
    dragoman agents update mailer --unset model,fallbacks
    """
    request(as_json, card(agent_card), "PATCH", _path(name), any_of(_facts(given)))


@app.command("start")
def start(name: Name, as_json: AsJson = False) -> None:
    """Have an agent take messages again."""
    request(as_json, _said("is at work"), "POST", _path(name, "start"))


@app.command("stop")
def stop(name: Name, as_json: AsJson = False) -> None:
    """Have an agent take no new message. It keeps all it has, and finishes what it works on."""
    request(as_json, _said("is stopped"), "POST", _path(name, "stop"))


@app.command("remove")
def remove(
    name: Name,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a worker with its numbers. What it said stays where it was said."""
    with session(as_json) as (door, screen):
        agent = door.ask("GET", _path(name))
        confirm(f"Remove the agent {agent['name']}?", yes, as_json)
        door.ask("DELETE", _path(name))
        if as_json:
            screen.data({"removed": agent["name"]})
        else:
            screen.note(f"{agent['name']} is removed")


@app.command("assign")
def assign(name: Name, connectors: Connectors, as_json: AsJson = False) -> None:
    """Give a worker connectors. Effective at once.

    \b
    dragoman agents assign mailer email
    """
    _change_connectors("PUT", name, connectors, as_json)


@app.command("unassign")
def unassign(name: Name, connectors: Connectors, as_json: AsJson = False) -> None:
    """Take connectors from a worker. Effective at once."""
    _change_connectors("DELETE", name, connectors, as_json)


def _change_connectors(method: str, name: str, connectors: list[str], as_json: bool) -> None:
    with session(as_json) as (door, screen):
        *_, agent = [door.ask(method, _path(name, "connectors", connector)) for connector in connectors]
        names = ", ".join(agent["connectors"] or ()) or "no connector"
        screen.data(agent) if as_json else screen.note(f"{agent['name']} has now: {names}")


def _facts(given: dict[str, Any]) -> dict[str, Any]:
    """As REST takes them: instructions may come from stdin, and no model is the default."""
    facts = dict(given)
    if facts.get("instructions") == "-":
        facts["instructions"] = sys.stdin.read()
    if facts.get("model") == "":
        facts["model"] = None
    return facts


def _path(name: str, *parts: str) -> str:
    return path_of("agents", name.removeprefix("@"), *parts)


def _said(what: str) -> Show:
    return lambda screen, agent: screen.note(f"{agent['name']} {what}")
