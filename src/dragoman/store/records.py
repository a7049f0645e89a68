"""Facts about what was kept, called, allowed, used and done: frozen values for the store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from dragoman.tool import ToolDefinition

ApprovalStatus = Literal["pending", "approved", "refused", "expired", "used"]
Answer = Literal["once", "thread", "always", "no"]


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
    """A wider yes: for a thread, or for every call (thread ""). It ends with the tool's version."""

    workspace: str
    user: str
    connector_id: str
    tool: str
    fingerprint: str
    thread: str
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
    """One count that must stay within its limit: of whom, of what, and the window it belongs to."""

    workspace: str
    subject: str
    measure: str
    window: int
    limit: float
    amount: float


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
