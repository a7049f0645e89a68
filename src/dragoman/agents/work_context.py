"""The context of an agent at work: its caller, its tools, and what it may ask of the run.

Starting another run and asking a person belong to higher layers: they are Protocols here, which `runs` and
`hub` implement.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dragoman.agent import Agent
from dragoman.agents.fences import one_line
from dragoman.agents.offers import CitedContext, OfferCall, SourceNumbers, ToolReply
from dragoman.run import Run
from dragoman.scope import Caller
from dragoman.tool import Tool, ToolCall, ToolOutput

_FEW, _LONGEST_LINE = 8, 300
ConnectorState = Literal["ready", "disabled", "needs_auth", "error", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorCard:
    """A connector as an agent that may delegate is told of it."""

    id: str
    slug: str
    description: str
    state: ConnectorState
    cause: str | None = None
    command_hint: str | None = None
    instructions: str = ""
    tools: int = 0
    aliases: tuple[str, ...] = ()

    def line(self, tools: Sequence[str] = ()) -> str:
        """As a prompt lists it. Of one that nobody described, a few of the tools say what it is for."""
        few = f"tools {', '.join(tools[:_FEW])}{' and others' if len(tools) > _FEW else ''}" if tools else ""
        about = one_line(self.description or few or "no description", _LONGEST_LINE)
        cause = f" ({one_line(self.cause, _LONGEST_LINE)})" if self.cause and self.state != "ready" else ""
        return f"- {self.slug}: {about}, {self.state}{cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonCard:
    """A person as the agents that work for them are told of them.

    Who signs in by an e-mail address has it as name. `time_zone` is the one that they chose.
    """

    name: str
    workspace: str
    email: str | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTools:
    """What a search brought, and how many tools there are in all."""

    tools: Sequence[Tool]
    total: int
    note: str = ""


class Toolbox(Protocol):
    """The road, the catalog and the sandbox, as far as agents know them. Decides what a caller sees."""

    async def present(self, caller: Caller) -> Caller:
        """The caller with what their user still has now; `Denied` when they are no longer active."""
        ...

    async def person(self, caller: Caller) -> PersonCard: ...

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """Those that the caller can call now in their thread: enabled, open to agents, not unavailable."""
        ...

    async def search(self, query: str, caller: Caller, limit: int) -> FoundTools: ...

    async def call(self, call: ToolCall, caller: Caller) -> ToolOutput: ...

    async def keep_media(self, output: ToolOutput, caller: Caller) -> tuple[Mapping[str, Any], ...]:
        """Pictures and sounds of the output, where a person can look at them: handle, type and size."""
        ...

    async def keeps_task(self, call: str) -> bool:
        """Whether a server works on a task for the call of this name, since before a restart."""
        ...

    async def run_code(self, code: str, caller: Caller, attempt: OfferCall) -> ToolReply:
        """The attempt's observer hears when a person is asked, and of every call that leaves."""
        ...

    async def deferred(self, caller: Caller) -> frozenset[str]:
        """Names of tools that a model gets only once they are loaded, in the caller's thread."""
        ...

    def loaded(self, caller: Caller) -> Sequence[str]:
        """Names of the tools that are loaded in the caller's thread."""
        ...

    def is_open_to_code(self, tool: Tool) -> bool: ...

    def is_native(self, tool: Tool) -> bool:
        """Whether it belongs to Dragoman itself and to no connector's agent."""
        ...

    def code_guide(self) -> str: ...

    def stub(self, tool: Tool, caller: Caller) -> str:
        """The tool as a function that code calls."""
        ...

    async def connectors(self, caller: Caller) -> Sequence[ConnectorCard]:
        """Those that the caller sees, by slug, with the state of each."""
        ...

    async def connect(self, card: ConnectorCard, caller: Caller) -> ConnectorCard:
        """Tries once to reach a connector that could not be reached; how it stands then."""
        ...

    def tokens(self, tool: Tool) -> int:
        """What its definition costs in a request."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationResult:
    """What came of a child run."""

    run: Run
    told: Mapping[str, Any] = field(default_factory=dict[str, Any])


class RunServices(Protocol):
    """What a run does for its agent beyond calling tools. Every method may be entered again after a crash."""

    async def ask_person(
        self,
        text: str,
        fields: Mapping[str, Any] | None,
        attempt: OfferCall,
        *,
        connector: str = "",
        url: str | None = None,
    ) -> Any:
        """The answer: text, or an object of `fields`. Raises `NobodyAnswered` when its time is over.

        `connector` is whose server asks, where it is not the agent itself.
        """
        ...

    async def delegate(
        self, agent: Agent, request: str, options: Mapping[str, Any], attempt: OfferCall
    ) -> DelegationResult:
        """Has another agent work on it, as a child run; waits for its end, whatever that is."""
        ...

    async def earlier_result(self, handle: str) -> ToolReply | None:
        """What a call of this agent brought in an earlier run of the thread, by the handle it was named."""
        ...

    def state_plan(self, steps: Sequence[Mapping[str, Any]]) -> None: ...

    def tell_notice(self, text: str) -> None:
        """For people who follow the run, as one of its events."""
        ...


@dataclass(slots=True, kw_only=True)
class WorkContext:
    """One run at work. `caller` is narrowed to what the agent may; `loaded` are tools found on the way.

    `has_heard_others`: what its model was given holds more than its person's own words (answers of tools, of
    other agents, a file, what servers say of their tools; not names). It is in the journal, in the messages
    of the thread and in the options of child runs, so that no restart and no delegation forgets it.
    """

    run: Run
    agent: Agent
    caller: Caller
    toolbox: Toolbox
    services: RunServices
    loaded: dict[str, None] = field(default_factory=dict[str, None])
    hidden: dict[str, int] = field(default_factory=dict[str, int])  # tokens not sent, by who kept them
    contexts: list[CitedContext] = field(default_factory=list[CitedContext])
    earlier_contexts: list[CitedContext] = field(default_factory=list[CitedContext])  # of its thread
    numbers: SourceNumbers = field(default_factory=SourceNumbers)
    missing: dict[str, int] = field(default_factory=dict[str, int])
    chain: tuple[str, ...] = ()
    has_heard_others: bool = False
    cites: bool = True  # what its tools bring has names by which its answer can cite it
    names_earlier: bool = False  # results of earlier runs, which `read_earlier` shows


class AgentDirectory(Protocol):
    """The agents that one caller has."""

    async def find(self, name: str) -> Agent | None:
        """The assistant, a worker of theirs or of the workspace, or a connector's agent by its slug."""
        ...

    async def list(self) -> Sequence[Agent]:
        """By name, stopped ones too."""
        ...

    async def find_for(self, connector_id: str) -> Agent | None:
        """The agent of a connector, whatever name it goes by."""
        ...


AgentsOf = Callable[[Caller], AgentDirectory]


def caller_of(agent: Agent, caller: Caller) -> Caller:
    """Whom an agent works for, with no more than the agent itself may."""
    if agent.capabilities is not None:
        caller = caller.narrowed(agent.capabilities)
    if agent.connectors is not None:
        caller = caller.within(agent.connectors)
    return caller
