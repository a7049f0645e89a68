"""What agents are told of themselves. Text only; what people wrote is added, never put in its place.

Each rule stands once. What stays the same comes first, so that providers can cache it; the time comes last.
"""

import json
from collections.abc import Sequence
from datetime import datetime

from dragoman.agent import Agent
from dragoman.agents.fences import RULE, fenced, one_line
from dragoman.agents.work_context import ConnectorCard, PersonCard
from dragoman.tool import Tool

_KINDS = {
    "assistant": "You are the assistant of Dragoman, the one a person talks to first.",
    "worker": "You are {name}, an agent that people gave a job and tools.",
    "connector": "You are the agent of the connector {name} and know its tools in full. Others give you one"
    " job at a time.",
}
_ABOUT = {"assistant": "Your job", "worker": "Your job", "connector": "What it is for"}
_RULES = f"""Rules:
- Facts and actions come from your functions. Never invent what a function can tell you, and never say that \
something was done unless a result says so.
- Call functions that do not need each other's results in one step: they run at the same time.
- {RULE}
- Results may name their sources by ids such as c1. Put the id in brackets after each fact that you take \
from them, as [c1]. Never write an id that no result gave you.
- Ask with ask_person only for what you need and find neither in the conversation nor with your functions. \
Do not ask for permission: Dragoman asks the person by itself where a call needs it.
- Use test data only when you are asked for a test, and say that it is test data.
- A call that the person refused stays refused: do not repeat it, do not reach the same another way. Say so, \
and do the rest.
- "uncertain" means that a call may or may not have taken effect. Do not repeat it. Look with a function \
that reads; if that does not tell, say that it is uncertain.
- When a call fails, do what can be done without it, and say what failed.
- Answer briefly, in the language of the person, in Markdown."""


def instructions_for(agent: Agent) -> str:
    parts = [
        _KINDS[agent.kind].format(name=agent.name),
        agent.description and f"{_ABOUT[agent.kind]}: {_about(agent)}",
        _RULES,
        agent.instructions,
    ]
    return "\n\n".join(part for part in parts if part)


def _about(agent: Agent) -> str:
    """A connector is described by its server, or by who added it; an agent's job is its person's wish."""
    return fenced(agent.description) if agent.kind == "connector" else agent.description


_LONGEST_NAME = 100


def situation(person: PersonCard, others: Sequence[str], now: datetime) -> str:
    """For whom it works, with whom and when. `now` is in the zone that is told."""
    name, workspace = (one_line(word, _LONGEST_NAME) for word in (person.name, person.workspace))
    email = f" ({one_line(person.email, _LONGEST_NAME)})" if person.email and person.email != name else ""
    who = f"You work for {name}{email} in the workspace {workspace}."
    time = f"It is {now:%A, %d %B %Y, %H:%M} ({_zone(now)}), to which words such as today and tomorrow refer."
    return "\n\n".join(filter(None, [_together(others), f"{who} {time}"]))


def _together(others: Sequence[str]) -> str:
    """Where a person wrote to several agents at once."""
    if not others:
        return ""
    names = ", ".join(f"@{name}" for name in others)
    return (
        f"The message is for several agents: for you and for {names}, who work on it now. Do only what is"
        " asked of you by name, or else what your own tools are for; leave the rest to them."
    )


def _zone(now: datetime) -> str:
    name = getattr(now.tzinfo, "key", None) or now.tzname() or "UTC"
    return name if name == "UTC" else f"{name}, UTC{now.isoformat()[-6:]}"


_WORK = (
    "State with state_plan which of your tools you will use, why and in which order, in the same step as your"
    " first calls. Take the values of later calls from earlier results. At last answer the job itself, from"
    " results only."
)
_PLAN = "Only a plan is wanted. State it with state_plan, call nothing else, and say it in a few sentences."
_LONGEST_WORDS = 8_000


def working(card: ConnectorCard | None, most: int | None) -> str:
    limit = f"You may make at most {most} tool calls; then answer with what you have." if most else ""
    return "\n\n".join(filter(None, [_WORK, limit, _connector(card)]))


def planning(card: ConnectorCard | None, tools: Sequence[Tool]) -> str:
    """With the schemas: where only a plan is wanted, the tools themselves are not offered."""
    lines = [
        f"- {tool.name}: {tool.definition.description}\n  {json.dumps(tool.definition.input_schema)}"
        for tool in tools
    ]
    listed = "Your tools would be:\n" + fenced("\n".join(lines))
    return "\n\n".join(filter(None, [_PLAN, _connector(card), listed]))


def _connector(card: ConnectorCard | None) -> str:
    words = card.instructions.strip()[:_LONGEST_WORDS] if card else ""
    return f"What the server says of its tools:\n{fenced(words)}" if words else ""
