"""What an agent may be called, hold and have changed, and by whom. Asks nothing and keeps nothing."""

import re
from collections.abc import Iterable
from dataclasses import replace

from dragoman.agent import ASSISTANT, Agent
from dragoman.errors import Denied, InvalidArguments, InvalidName
from dragoman.hub.connector_agents import other_name
from dragoman.scope import APP, Caller
from dragoman.setting import people_set

RESERVED = frozenset({ASSISTANT, "person", "system", "dragoman", "all", "everyone", "here", "channel", "me"})
_NAME = re.compile(r"[^\W\d_](?:[\w .-]{0,38}\w)?")


def key(name: str) -> str:
    """Names that differ in nothing but case are one."""
    return name.casefold()


def checked_name(name: str) -> str:
    name = name.strip().removeprefix("@")
    if not _NAME.fullmatch(name):
        raise InvalidName(
            f"{name[:80]!r} cannot be the name of an agent",
            hint="use a letter, then letters, digits, spaces, dots and hyphens, at most 40 in all",
        )
    if key(name) in RESERVED or key(name).startswith(other_name("")):
        raise InvalidName(f"{name!r} is reserved", hint="choose another name")
    return name


def check_changes(agent: Agent, changes: Iterable[str]) -> None:
    """`InvalidArguments` for what nobody changes of this agent."""
    allowed = [
        one.path[0]
        for one in people_set(Agent)
        if not is_of_files(agent) and agent.kind in (one.setting.when or (agent.kind,))
    ]
    if unknown := {*changes} - {*allowed}:
        raise InvalidArguments(
            f"{', '.join(sorted(unknown))} of {agent.name!r} cannot be changed",
            hint=f"there are: {', '.join(sorted(allowed))}"
            if allowed
            else "change its file in the app's folder",
        )


def changeable(agent: Agent, caller: Caller) -> Agent:
    is_own = agent.owner == caller.user and agent.workspace == caller.workspace
    is_run = caller.is_admin and agent.workspace == caller.workspace
    if is_own or is_run or caller.role == "operator":
        return agent
    raise Denied(f"the agent {agent.name!r} belongs to everybody", hint="ask an admin to change it")


def is_of_files(agent: Agent) -> bool:
    return agent.workspace == APP and agent.kind == "worker"


def as_chosen(agent: Agent, kept: Agent | None) -> Agent:
    """An agent of the folder, stopped if somebody stopped it; all else is in its file."""
    if kept is None:
        return agent
    return replace(agent, status=kept.status, updated_at=kept.updated_at, revision=kept.revision)


def assistant_of(stored: Iterable[Agent], workspace: str) -> Agent:
    """The workspace's own, or as it is before anybody changed it."""
    own = [agent for agent in stored if agent.kind == "assistant"]
    if own:
        return own[0]
    return Agent(
        id=f"agt_assistant_{workspace}",
        workspace=workspace,
        name=ASSISTANT,
        kind="assistant",
        description="answers, delegates and manages agents and connectors",
    )
