"""Messages of a thread, runs of agents, their journal, events and questions: frozen values that travel.

Knows no model, no store and no door.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Literal, cast

from dragoman.agent import Exposure
from dragoman.errors import DragomanError
from dragoman.hints import Hinted
from dragoman.scope import Caller, Role

RunStatus = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
RunSort = Literal["newest", "longest", "costliest"]
FINISHED: frozenset[RunStatus] = frozenset({"done", "failed", "cancelled"})
Author = Literal["person", "agent", "system"]
QuestionStatus = Literal["pending", "answered", "declined", "expired", "cancelled"]
StepKind = Literal["prompt", "messages", "offered", "call.departed", "call.finished", "plan", "note"]
RunEventKind = Literal[
    "message.added",
    "run.queued",
    "run.started",
    "run.resumed",
    "run.waiting",
    "run.continued",
    "run.finished",
    "text",
    "text.discarded",
    "call.started",
    "call.progress",
    "call.finished",
    "plan.stated",
    "notice",
    "question.asked",
    "question.answered",
    "approval.requested",
    "approval.answered",
]


TRACE = "trace"
"""In the options of a run: the trace that it belongs to, as `traceparent` has it."""
COPIED = "copied"
"""In the details of a message that came from another thread: its run is there, not here."""
HEARD_OTHERS = "heard_others"
"""In the options of a run and the details of a message: more than the words of the person went into it."""
MANAGES = "manages"
"""In the options of a run: whether who asked may manage."""
KEY = "key"
"""In the options of a run: the key or client that it was asked through. Child runs have it, too."""
OTHERS = "others"
"""In the options of a run: the names of the other agents that the same message was written to."""
TIME_ZONE = "time_zone"
"""In the options of a run: the zone of the browser that the message was written in."""
UNREACHED = "unreached"
"""In the options of a run that hands a message out: what is said of those who do not get it, and a hint."""
ATTACHMENTS = "attachments"
"""In the options of a run and the details of a message: files beside the words, each with its handle."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a thread. `number` is given by the store; `run` is what it started or came of.

    `details` hold what a door shows beside an agent's text: status, tokens, cost, thumb.
    """

    workspace: str
    user: str
    thread: str
    author: Author
    text: str
    number: int = 0
    agent: str | None = None
    run: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime = field(default_factory=_now)

    @property
    def is_of_others(self) -> bool:
        """Whether it may hold more than the person's own words. What an older message does not tell, does."""
        return bool(self.details.get(HEARD_OTHERS, self.author != "person"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What one run may use, its child runs included. None is no limit; money is in dollars.

    `seconds` counts work; waiting for a person does not.
    """

    requests: int | None = 50
    calls: int | None = 50
    tokens: int | None = 200_000
    cost: float | None = None
    seconds: float | None = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What a run used, its child runs included. `unpriced`: requests to models whose price nobody knows."""

    requests: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    tokens_saved: int = 0
    unpriced: int = 0

    def plus(self, other: "RunUsage") -> "RunUsage":
        return RunUsage(**{name: getattr(self, name) + getattr(other, name) for name in _USED})


_USED = tuple(item.name for item in fields(RunUsage))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError(Hinted):
    """Why a run ended without an answer: for a program (code) and for a person (message, hint)."""

    code: str
    message: str
    command_hint: str | None = None
    cause: str | None = None

    @classmethod
    def of(cls, error: DragomanError) -> "RunError":
        return cls(code=error.code, message=error.message, command_hint=error.command_hint, cause=error.cause)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any] | None) -> "RunError | None":
        """As it was kept."""
        if facts is None:
            return None
        return cls(
            code=facts["code"],
            message=facts["message"],
            command_hint=facts.get("hint"),
            cause=facts.get("cause"),
        )

    def facts(self) -> dict[str, Any]:
        """As it is kept, and told by events: the hint is a command, whoever reads it words it."""
        return {"code": self.code, "message": self.message, "hint": self.command_hint, "cause": self.cause}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One agent working on one message, or on what another agent asked of it.

    `root` is the run that a person started; `parent` and `parent_call` say which call of which run
    started this one. `agent` is a name; "" is a run that only hands a message to several agents.
    `options` are how the request narrows the work (max_tools, plan_only, context, timeout).
    `grants` and `role` are whom it acts for; `worker` and `lease_until` who executes it.
    """

    id: str
    workspace: str
    user: str
    thread: str
    root: str
    agent: str
    request: str
    parent: str | None = None
    parent_call: str | None = None
    message: int | None = None
    status: RunStatus = "queued"
    answer: str | None = None
    error: RunError | None = None
    model: str | None = None
    exposure: Exposure | None = None
    arm: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limits: RunLimits = RunLimits()
    usage: RunUsage = RunUsage()
    role: Role = "member"
    grants: tuple[frozenset[str], ...] = ()
    cancel_asked: bool = False
    worker: str | None = None
    lease_until: datetime | None = None
    created_at: datetime = field(default_factory=_now)
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def is_root(self) -> bool:
        return self.root == self.id

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def caller(self) -> Caller:
        """Whom it works for; what the agent itself may is narrowed further where it is made."""
        return Caller(
            workspace=self.workspace,
            user=self.user,
            thread=self.thread or None,
            agent=self.agent or None,
            way="agent",
            role=self.role,
            grants=self.grants,
            manages=bool(self.options.get(MANAGES)),
            key=self.options.get(KEY),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One entry of a run's journal. `key` names the call it is about: turn and tool call id."""

    workspace: str
    run: str
    kind: StepKind
    key: str = ""
    content: Any = None
    number: int = 0
    time: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One thing that a person sees happen. Numbered within the root run, so that a stream can be resumed."""

    workspace: str
    root: str
    run: str
    kind: RunEventKind
    number: int
    agent: str = ""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    time: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an agent, or a server in the middle of a call, wants to know from a person before it goes on.

    `connector` is whose server asks; empty where an agent does. A server may also send the person to a `url`:
    then the answer only says that they went there. `run` and `root` are empty for a call outside of runs.
    `fields` is a JSON schema of an object where values of certain types are wanted; else the answer is text.
    Where a person chooses a call, it has a `oneOf` of such schemas, each with a `tool` and its `arguments`;
    what could be filled in is the default of the arguments.
    """

    id: str
    workspace: str
    user: str
    thread: str
    run: str
    root: str
    key: str
    agent: str
    text: str
    connector: str = ""
    fields: Mapping[str, Any] | None = None
    url: str | None = None
    status: QuestionStatus = "pending"
    answer: Any = None
    created_at: datetime = field(default_factory=_now)
    expires_at: datetime
    answered_at: datetime | None = None

    @property
    def calls(self) -> Sequence[Mapping[str, Any]]:
        """The schemas of the calls to choose from; none where something else is asked."""
        # A server may ask, too: what it writes there need not be a schema.
        return [one for one in self._branches if {"tool", "arguments"} <= {*(one.get("properties") or ())}]

    @property
    def takes_text(self) -> bool:
        return (self.fields is None and self.url is None) or (
            bool(self.calls) and {"type": "string"}.items() <= self._branches[-1].items()
        )

    @property
    def _branches(self) -> Sequence[Mapping[str, Any]]:
        found = (self.fields or {}).get("oneOf")
        branches = cast("list[Any]", found) if isinstance(found, list) else []
        return [cast("Mapping[str, Any]", one) for one in branches if isinstance(one, Mapping)]


def new_run_id() -> str:
    return f"run_{token_hex(10)}"
