"""Agents: who decides. Frozen values; knows no model, no store and no door.

A worker is made by people, a connector agent by Dragoman for each connector, the assistant is the one
a person talks to first. What an agent may reach is a part of what its user may, never more.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from dragoman.scope import Capability
from dragoman.setting import Setting

AgentKind = Literal["assistant", "worker", "connector"]
AgentStatus = Literal["active", "stopped"]
Exposure = Literal["auto", "direct", "search", "delegate", "code"]
ASSISTANT = "assistant"


def _now() -> datetime:
    return datetime.now(UTC)


_Text = Annotated[str, Field(max_length=20_000)]
_ModelName = Annotated[str, Field(max_length=500)]
_Slug = Annotated[str, Field(max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """What people set of an agent, wherever it is written down.

    `instructions` of a connector agent and of the assistant are what people add to Dragoman's own.
    `capabilities` None: all that the user has. `connectors` None: all that are active where it works; a
    worker has just those that it was given.
    """

    description: Annotated[
        _Text,
        Setting(
            "Its job in one sentence; others choose it by that.",
            "Work",
            "owner",
            when=("worker",),
            example="Looks after the issue tracker",
        ),
    ] = ""
    instructions: Annotated[
        _Text,
        Setting(
            "What it is told to do, and how.",
            "Work",
            "owner",
            rows=7,
            example="What it is for, what it must never do, how it should answer.",
        ),
    ] = ""
    model: Annotated[
        _ModelName | None,
        Setting(
            'What it thinks with, such as "openai:gpt-5"; none: the default.',
            "Model",
            "owner",
            example="the default",
        ),
    ] = None
    fallbacks: Annotated[
        tuple[_ModelName, ...],
        Field(max_length=10),
        Setting("Models that step in when the first fails.", "Model", "owner", flag="--fallback"),
    ] = ()
    capabilities: Annotated[
        Annotated[frozenset[Capability], Field(max_length=1000)] | None,
        Setting(
            "Tools, or beginnings of their names; unset: all that its user has.",
            "Tools",
            "owner",
            flag="--capability",
            when=("worker",),
            example="all that its user has",
        ),
    ] = None
    connectors: Annotated[
        Annotated[tuple[_Slug, ...], Field(max_length=1000)] | None,
        Setting(
            "Whose tools it may use; a worker has those that it was given.",
            "Tools",
            "owner",
            flag="--",
            when=("worker",),
        ),
    ] = None
    exposure: Annotated[
        Exposure,
        Setting(
            "How its tools are shown to it.",
            "Tools",
            "owner",
            label="How tools are offered",
            words={
                "auto": "auto: what suits the tools it has",
                "direct": "direct: all its tools at once",
                "search": "search: it searches for the tools it needs",
                "delegate": "delegate: it asks the agents of connectors",
                "code": "code: it writes programs that call tools",
            },
        ),
    ] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(AgentProfile):
    """One agent as it is kept. `owner` is empty for one of the whole workspace."""

    id: str
    workspace: str
    name: str
    kind: AgentKind
    owner: str = ""
    status: AgentStatus = "active"
    connector_id: str | None = None
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)
    revision: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNumbers:
    """What one agent has done in one workspace. `milliseconds` is the time of all its runs together;
    `unpriced` are requests to models whose price nobody knows.
    """

    runs: int = 0
    errors: int = 0
    calls: int = 0
    milliseconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    last_used: datetime | None = None

    @property
    def latency_ms(self) -> float:
        """The mean of its runs."""
        return self.milliseconds / self.runs if self.runs else 0.0
