"""Facts about what was kept, called, allowed, used and done: frozen values for the store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from dragoman.agent import AgentNumbers
from dragoman.connector import Origin
from dragoman.people import Thread
from dragoman.run import Message, Question, Run, RunEvent, Step
from dragoman.telemetry.time_buckets import MEASURES
from dragoman.tool import ToolDefinition

ApprovalStatus = Literal["pending", "approved", "refused", "expired", "used"]
Answer = Literal["once", "thread", "always", "no"]
ChangeKind = Literal[
    "connector",
    "tools",
    "credential",
    "workspace",
    "user",
    "key",
    "thread",
    "loaded_tools",
    "agent",
    "approval",
    "recipe",
    "bundle",
    "model_provider",
    "rollout",
    "client_session",
    "one_time_value",
]


class RestingRun(NamedTuple):
    """A root run in which nothing happens until a person answers; `last_event` is its last one's number."""

    question: Question
    last_event: int


class HeldRuns(NamedTuple):
    """How many unfinished runs a worker holds, and the last end of its leases."""

    until: datetime
    runs: int


_AHEAD = 64  # of what a limit leaves, this part is taken ahead at most
_WORTH = 8  # amounts; less is not taken ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something was written that other processes may remember otherwise. What it is now, the store says.

    `subject` is an id (of a connector, for its tools and credentials), `user` whose it is. `details` are
    names only: which fields are new, which tools were loaded, which secrets were removed.
    """

    kind: ChangeKind
    what: Literal["added", "updated", "removed"]
    workspace: str
    user: str = ""
    subject: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """How far changes were read: all below `horizon`, and of those above it the ones that are `seen`."""

    horizon: int
    seen: frozenset[int]
    read_at: datetime


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """What others changed since a position. None: too much time has passed, read everything again."""

    changes: tuple[Change, ...] | None
    position: ChangePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketQuery:
    """Buckets of one span in a stretch of time, in seconds since 1970; `end` is not part of it.

    `step`: how much of that time makes one sum, all of it for None. `only`: of which users, connectors and so
    on, by dimension. `shared`: connectors whose rows of nobody in particular are read beside the user's.
    `measures`: what is summed; each costs as much as the next.
    """

    workspace: str
    user: str | None
    span: int
    start: int
    end: int
    step: int | None = None
    split: str | None = None
    only: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    shared: Collection[str] = ()
    measures: tuple[str, ...] = MEASURES


class BucketSum(NamedTuple):
    """What was counted of one thing in one step of time; `counts` are in the order of the `measures`."""

    start: int
    of: str
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSecret:
    """One encrypted value. What it is bound to is authenticated, not only stored beside it."""

    workspace: str
    user: str
    connector_id: str
    name: str
    key_id: str
    nonce: bytes
    ciphertext: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """A provider of language models that people set, under the first part of its model strings.

    Without a workspace it is the app's. `secret` is its sealed key, bound to `url` too; `origin` is who
    answers for where requests go.
    """

    workspace: str
    name: str
    kind: str
    url: str | None = None
    model: str | None = None
    origin: Origin = "people"
    secret: SealedSecret | None = None
    created_at: datetime
    updated_at: datetime
    revision: int = 0

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What its key is bound to: at another address it does not open."""
        return self.workspace, "", f"model_provider:{self.name}", self.url or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolVersion:
    """One definition that a tool has had. `diff` tells a person what changed since the one before."""

    tool: str
    version: int
    fingerprint: str
    definition: ToolDefinition
    diff: str
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """A result too large for its caller, kept whole. Only the user who made the call reads it."""

    handle: str
    workspace: str
    user: str
    tool: str
    content_type: str
    body: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One finished call as it is remembered: no arguments, no result."""

    id: str
    workspace: str
    user: str
    thread: str | None
    agent: str | None
    way: str
    tool: str
    connector_id: str | None
    slug: str | None
    ok: bool
    code: str | None
    message: str | None
    duration_ms: float
    attempts: int
    started_at: datetime
    trace: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBinding:
    """The exact call that an approval is for. Another character in the arguments is another hash."""

    workspace: str
    user: str
    thread: str | None
    agent: str | None
    way: str
    key: str | None
    connector_id: str
    tool: str
    version: int
    fingerprint: str
    arguments_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question to a person and what became of it. The arguments are sealed: they may hold anything.

    `used_by` names the call that a yes was used for, where that call may be entered again after a crash.
    """

    id: str
    binding: CallBinding
    slug: str
    reason: str
    arguments: bytes
    only_once: bool
    status: ApprovalStatus
    created_at: datetime
    expires_at: datetime
    answer: Answer | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    used_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A wider yes: for a thread, or for every call (thread ""). It ends with the tool's version.

    It holds for what came through the same key or client (key "": through none).
    """

    workspace: str
    user: str
    connector_id: str
    tool: str
    fingerprint: str
    thread: str
    key: str
    approval_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTool:
    """One tool that a model has in view in a thread, by the name that it had when it was loaded."""

    workspace: str
    user: str
    thread: str
    tool: str
    loaded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMeter:
    """One count that must stay within its limit: of whom, of what, and the window it belongs to.

    `ahead` is what to take for later, besides the amount, where the limit leaves plenty.
    """

    workspace: str
    subject: str
    measure: str
    window: int
    limit: float
    amount: float
    ahead: float = 0.0

    def ahead_of(self, used: float) -> float:
        """What may be taken with it for later: a small part of what is left, or nothing near the limit."""
        unit = self.amount or 1.0
        ahead = min(self.ahead, (self.limit - used - self.amount) / _AHEAD)
        return ahead // unit * unit if ahead >= self.worth else 0.0

    @property
    def worth(self) -> float:
        """The least that is taken ahead."""
        return _WORTH * (self.amount or 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUsage:
    """What was taken ahead of each meter, and how many have a place beside each lease, it included."""

    ahead: tuple[float, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLease:
    """A place among those at work at once. It frees itself at `expires_at`, should nobody give it back."""

    id: str
    workspace: str
    subject: str
    limit: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what to which. Number and hashes are given by the store when it is written."""

    time: datetime
    workspace: str
    user: str
    agent: str | None
    way: str
    action: str
    subject: str
    outcome: str
    arguments_hash: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    number: int = 0
    previous: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationFlow:
    """An authorisation that a person has begun. Found by the hash of its state, taken once."""

    state_hash: str
    workspace: str
    user: str
    connector_id: str
    sealed: bytes
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    """A session of an MCP client, as every process knows it. `id` is the hash of what the client has.

    `caller` and `target` are whose it is and at which address, in words that are compared. `lists` are the
    digests of the lists that the client knows, `watched` the resources it subscribed to, `stream` the name of
    the standing stream that it opened last.
    """

    id: str
    workspace: str
    user: str
    caller: str
    target: str
    capabilities: Mapping[str, Any]
    lists: Mapping[str, str] = field(default_factory=dict[str, str])
    watched: Sequence[str] = ()
    stream: str = ""
    used_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTimeValue:
    """Something that is taken once, by whichever process is asked with the words that `id` is the hash of."""

    id: str
    kind: str
    workspace: str
    user: str
    sealed: bytes
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredClient:
    """An OAuth client that registered itself; `is_used` once somebody has allowed it something."""

    id: str
    metadata: Mapping[str, Any]
    is_used: bool = False
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSigningKey:
    """The private key that signs access tokens, sealed by the vault."""

    id: str
    sealed: bytes = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class BegunThread:
    """A thread that nobody wrote down before, and what the audit trail says of it."""

    thread: Thread
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be written, with its message and first events, and the thread that it begins.

    With a `worker` that could begin at once: it holds the run `until` then, if it is its turn.
    """

    run: Run
    message: Message | None = None
    events: Sequence[RunEvent] = ()
    worker: str | None = None
    until: datetime | None = None
    begun: BegunThread | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRun:
    """A run and the message that it works on, as they were written together."""

    run: Run
    message: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorked:
    """What an agent did in a run that ended: added to its numbers."""

    workspace: str
    run: str
    agent: str
    numbers: AgentNumbers


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """What is written together: one transaction.

    Steps get the next numbers of their runs in the order given. Events carry their numbers; one that is
    there already is left as it is. Runs are replaced whole, but for `cancel_asked`, `worker`, `lease_until`.
    """

    steps: Sequence[Step] = ()
    events: Sequence[RunEvent] = ()
    runs: Sequence[Run] = ()
    messages: Sequence[Message] = ()
    worked: Sequence[AgentWorked] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSample:
    """One finished run as a rollout counts it. `thumb` is 1, -1, or 0 for nobody said."""

    run: str
    workspace: str
    user: str
    arm: str
    ok: bool
    milliseconds: float
    tokens: int
    cost: float
    unpriced: int = 0
    thumb: int = 0
    at: datetime
