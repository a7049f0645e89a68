"""Agents: who decides. Frozen values; knows no model, no store and no door.

A worker is made by people, a connector agent by Dragoman for each connector, the assistant is the one
a person talks to first. What an agent may reach is a part of what its user may, never more.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from dragoman.setting import Setting

AgentKind = Literal["assistant", "worker", "connector"]
AgentStatus = Literal["active", "stopped"]
Exposure = Literal["auto", "direct", "search", "delegate", "code"]
ASSISTANT = "assistant"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent as it is kept.

    `owner` is empty for one of the whole workspace. `instructions` of a connector agent and of the assistant
    are what people add to Dragoman's own. `capabilities` None: all that the user has. `connectors` None: all
    that are active where it works; a worker has just those that it was given.
    """

    id: str
    workspace: str
    name: str
    kind: AgentKind
    owner: str = ""
    status: AgentStatus = "active"
    description: Annotated[
        str, Setting("Its job in one sentence; others choose it by that.", "Work", "owner")
    ] = ""
    instructions: Annotated[
        str, Setting("What it is told; a command reads - from stdin.", "Work", "owner")
    ] = ""
    model: Annotated[
        str | None,
        Setting('What it thinks with, such as "openai:gpt-5"; none: the default.', "Model", "owner"),
    ] = None
    fallbacks: Annotated[
        tuple[str, ...],
        Setting("Models that step in when the first fails.", "Model", "owner", flag="--fallback"),
    ] = ()
    capabilities: Annotated[
        frozenset[str] | None,
        Setting(
            "Tools, or beginnings of their names; none: all that its user has.",
            "Tools",
            "owner",
            flag="--capability",
        ),
    ] = None
    connectors: Annotated[
        tuple[str, ...] | None,
        Setting("Whose tools it may use; a worker has those that it was given.", "Tools", "owner", flag="--"),
    ] = None
    connector_id: str | None = None
    exposure: Annotated[
        Exposure,
        Setting(
            "How its tools are shown to it.",
            "Tools",
            "owner",
            words={
                "auto": "auto: what suits the tools it has",
                "direct": "direct: all its tools at once",
                "search": "search: it searches for the tools it needs",
                "delegate": "delegate: it asks the agents of connectors",
                "code": "code: it writes programs that call tools",
            },
        ),
    ] = "auto"
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNumbers:
    """What one agent has done in one workspace. `milliseconds` is the time of all its runs together."""

    runs: int = 0
    errors: int = 0
    calls: int = 0
    milliseconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    last_used: datetime | None = None

    @property
    def latency_ms(self) -> float:
        """The mean of its runs."""
        return self.milliseconds / self.runs if self.runs else 0.0
