"""What Dragoman asks of a store. Anything that fills these Protocols can be plugged in.

Every question carries the workspace. Facts are frozen values of the layers below; a store knows
nothing of servers, people or permissions, and never sees a secret in the clear.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from dragoman.connector import Connector
from dragoman.people import ApiKey, Thread, User, Workspace
from dragoman.store.records import (
    Allowance,
    Approval,
    AuditEntry,
    AuthorizationFlow,
    CallBinding,
    CallRecord,
    ConcurrencyLease,
    KeptResult,
    LoadedTool,
    SealedSecret,
    ToolVersion,
    UsageMeter,
)
from dragoman.store.run_protocols import AgentRows, MessageRows, QuestionRows, RolloutRows, RunRows
from dragoman.tool import Tool


class ConnectorRows(Protocol):
    async def list(self, workspace: str | None = None) -> Sequence[Connector]:
        """All connectors of a workspace, or of all of them (None: for the hub's own start only)."""
        ...

    async def add(self, connector: Connector, secrets: Sequence[SealedSecret]) -> None:
        """Writes both or nothing. `Conflict` when the slug or an alias is taken in that workspace."""
        ...

    async def update(self, connector: Connector, secrets: Sequence[SealedSecret] | None = None) -> None:
        """Replaces the row, and all its shared secrets unless `secrets` is None.

        `NotFound` when it is gone, `Conflict` when a new slug or alias is taken.
        """
        ...

    async def remove(self, workspace: str, connector_id: str) -> None:
        """Takes its tools, versions, secrets and metrics along."""
        ...

    async def secrets(self, connector: Connector, workspace: str, user: str) -> Sequence[SealedSecret]:
        """The shared ones (user ""), then those of `user` of `workspace`; never another user's."""
        ...

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that stored secrets are sealed with: a start compares them with its own."""
        ...

    async def put_secrets(
        self,
        connector: Connector,
        holder: tuple[str, str],
        secrets: Sequence[SealedSecret],
        removed: Sequence[str] = (),
    ) -> None:
        """Adds or replaces secrets of one holder (workspace and user) and deletes the `removed` names.

        `NotFound` when the connector is gone.
        """
        ...

    async def forget_personal(self, connector: Connector) -> None:
        """Deletes what users brought for a connector; its shared secrets stay."""
        ...

    async def secret_names(self, workspace: str, user: str) -> Mapping[str, frozenset[str]]:
        """Names of the secrets that one user has, by connector id."""
        ...

    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        """Up to `limit` secrets that another key than this one sealed: for the rotation."""
        ...

    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        """Replaces one sealed secret unless it was changed meanwhile."""
        ...


class ToolRows(Protocol):
    async def list(self, workspace: str | None = None) -> Sequence[Tool]: ...

    async def save(
        self, tools: Sequence[Tool], versions: Sequence[ToolVersion], removed: Sequence[Tool]
    ) -> None:
        """All or nothing: deletes `removed`, upserts by (connector, identity, name), adds versions.

        A version belongs to the tool of its name in `tools`, so one save with versions is for one
        connector and identity. A tool that exists keeps its `first_seen`; a removed one loses its
        versions. `NotFound` when the connector has been removed meanwhile.
        """
        ...

    async def versions(self, tool: Tool) -> Sequence[ToolVersion]:
        """Oldest first."""
        ...


class ResultRows(Protocol):
    async def keep(self, result: KeptResult) -> None: ...

    async def find(self, workspace: str, user: str, handle: str) -> KeptResult | None: ...

    async def forget(self, before: datetime) -> int: ...


class CallRows(Protocol):
    async def add(self, records: Sequence[CallRecord]) -> None:
        """One transaction. A record that is known already is skipped, so a batch may be added again."""
        ...

    async def recent(self, workspace: str, user: str, limit: int = 100) -> Sequence[CallRecord]:
        """Newest first."""
        ...

    async def count(self, workspace: str, user: str, since: datetime) -> int:
        """How many calls a user has begun since then."""
        ...

    async def forget(self, before: datetime) -> int: ...


class MetricRows(Protocol):
    async def load(self) -> Mapping[str, Mapping[str, Any]]:
        """The last numbers of each connector, by connector id."""
        ...

    async def save(self, numbers: Mapping[str, Mapping[str, Any]]) -> None:
        """One transaction. Numbers of a connector that is gone are dropped."""
        ...


class PeopleRows(Protocol):
    """Workspaces, users and keys."""

    async def workspaces(self) -> Sequence[Workspace]: ...

    async def find_workspace(self, workspace: str) -> Workspace | None: ...

    async def put_workspace(self, workspace: Workspace) -> None: ...

    async def remove_workspace(self, workspace: str) -> None:
        """With everything that has its name on it, the audit trail excepted."""
        ...

    async def users(self, workspace: str) -> Sequence[User]:
        """By name."""
        ...

    async def find_user(self, workspace: str, user: str) -> User | None: ...

    async def find_external(self, external: str) -> User | None:
        """Whoever an outside issuer knows by this name."""
        ...

    async def put_user(self, user: User) -> None:
        """`Conflict` when another user of the workspace has the name, or the outside name is taken."""
        ...

    async def remove_user(self, workspace: str, user: str) -> None:
        """Takes keys, threads, secrets, approvals and allowances along; connectors are removed before."""
        ...

    async def keys(self, workspace: str, user: str | None = None) -> Sequence[ApiKey]:
        """Newest first; of one user, or of the whole workspace."""
        ...

    async def find_key(self, hash: str) -> ApiKey | None: ...

    async def put_key(self, key: ApiKey) -> None: ...

    async def used_keys(self, moments: Mapping[str, datetime]) -> None:
        """Notes when keys were last used, by key id."""
        ...


class ThreadRows(Protocol):
    async def list(self, workspace: str, user: str, limit: int = 100) -> Sequence[Thread]:
        """Last changed first."""
        ...

    async def find(self, workspace: str, user: str, thread: str) -> Thread | None: ...

    async def put(self, thread: Thread) -> None: ...

    async def remove(self, workspace: str, user: str, thread: str) -> None:
        """Takes along what was loaded there."""
        ...


class LoadedToolRows(Protocol):
    async def recent(self, limit: int) -> Sequence[LoadedTool]:
        """Of all threads, the newest `limit`, the oldest of them first: for the hub's own start only."""
        ...

    async def list(self, workspace: str, user: str, thread: str) -> Sequence[LoadedTool]:
        """The oldest first."""
        ...

    async def change(self, put: Sequence[LoadedTool], removed: Sequence[LoadedTool]) -> None:
        """Both or nothing. One that was loaded already is loaded anew, at its new time."""
        ...

    async def forget(self, before: datetime) -> None:
        """Those that were loaded before, in threads that nobody wrote down."""
        ...


class ApprovalRows(Protocol):
    async def ask(self, approval: Approval) -> Approval:
        """The open question for the same binding, or this one, written."""
        ...

    async def find(self, workspace: str, approval_id: str) -> Approval | None: ...

    async def list(
        self, workspace: str, user: str | None = None, status: str | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        """Newest first; of one user, or of the whole workspace."""
        ...

    async def answer(self, approval: Approval, allowance: Allowance | None) -> bool:
        """Writes the answer if the question is still open; both or nothing."""
        ...

    async def take(self, binding: CallBinding, now: datetime, used_by: str | None = None) -> Approval | None:
        """An approved, unused and unexpired one for exactly this call, used from now on by nobody else.

        Where the call is named by `used_by`, the one that the same call took before is its own still.
        """
        ...

    async def settled(self, approvals: Collection[str]) -> frozenset[str]:
        """Those of these ids that wait for nobody any more."""
        ...

    async def drop(self, workspace: str, approval_id: str) -> bool:
        """Closes an open question that nobody waits for any more."""
        ...

    async def count_open(self, workspace: str, user: str) -> int:
        """How many questions wait for this user's answer."""
        ...

    async def allows(
        self, workspace: str, user: str, connector_id: str, tool: str, fingerprint: str, thread: str | None
    ) -> bool:
        """Whether an allowance for this version covers the thread, or all."""
        ...

    async def allowances(self, workspace: str, user: str) -> Sequence[Allowance]: ...

    async def withdraw(self, workspace: str, user: str, approval_id: str) -> bool: ...

    async def expire(self, now: datetime) -> None:
        """Closes open questions whose time is over, and forgets closed ones of long ago."""
        ...


class UsageRows(Protocol):
    """Counts that several processes share. Each method is one transaction."""

    async def take(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease], now: datetime
    ) -> UsageMeter | ConcurrencyLease | None:
        """Adds all amounts and takes all places; or nothing, and returns the first that exceeds its limit.

        An amount of nothing asks whether there is room at all.
        """
        ...

    async def settle(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        """Adds amounts whatever the limits, as they were used after all, and gives places back."""
        ...

    async def read(self, workspace: str, subject: str) -> Mapping[tuple[str, int], float]:
        """What was counted of a subject, by measure and window."""
        ...

    async def count_places(self, workspace: str, subject: str, now: datetime) -> int:
        """How many places a subject holds."""
        ...

    async def forget(self, before_window: Mapping[str, int], now: datetime) -> None:
        """Deletes windows that are over, by measure, and places that nobody gave back."""
        ...


class AuditRows(Protocol):
    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Each gets the next number of its workspace and the hash over itself and the one before."""
        ...

    async def read(
        self,
        workspace: str,
        *,
        after: int = 0,
        limit: int = 1000,
        user: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest_first: bool = False,
    ) -> Sequence[AuditEntry]: ...

    async def workspaces(self) -> Sequence[str]:
        """Ids of those that ever had an entry, removed ones included."""
        ...

    async def forget(self, workspace: str, before: datetime) -> int:
        """Deletes the oldest entries and writes down what the chain went on from."""
        ...

    async def anchor(self, workspace: str) -> tuple[int, str]:
        """Number and hash of the last entry that was forgotten; (0, "") when none was."""
        ...

    async def head(self, workspace: str) -> tuple[int, str]:
        """Number and hash of the last entry there is: one that is missing at the end is noticed too."""
        ...


class FlowRows(Protocol):
    async def put(self, flow: AuthorizationFlow) -> None:
        """Also forgets those whose time is over."""
        ...

    async def take(self, state_hash: str, now: datetime) -> AuthorizationFlow | None:
        """Once, and only in time."""
        ...


class Store(Protocol):
    """One open store. Who opens it closes it."""

    @property
    def connectors(self) -> ConnectorRows: ...
    @property
    def tools(self) -> ToolRows: ...
    @property
    def results(self) -> ResultRows: ...
    @property
    def calls(self) -> CallRows: ...
    @property
    def metrics(self) -> MetricRows: ...
    @property
    def people(self) -> PeopleRows: ...
    @property
    def threads(self) -> ThreadRows: ...
    @property
    def loaded(self) -> LoadedToolRows: ...
    @property
    def approvals(self) -> ApprovalRows: ...
    @property
    def usage(self) -> UsageRows: ...
    @property
    def audit(self) -> AuditRows: ...
    @property
    def flows(self) -> FlowRows: ...
    @property
    def agents(self) -> AgentRows: ...
    @property
    def messages(self) -> MessageRows: ...
    @property
    def runs(self) -> RunRows: ...
    @property
    def questions(self) -> QuestionRows: ...
    @property
    def rollout(self) -> RolloutRows: ...

    async def ping(self) -> None:
        """Raises `StoreUnavailable` when facts can be neither read nor written."""
        ...
