"""What Dragoman asks of a store. Anything that fills these Protocols can be plugged in.

Every question carries the workspace. Facts are frozen values of the layers below; a store knows
nothing of servers, people or permissions, and never sees a secret in the clear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from dragoman.connector import Connector
from dragoman.tool import Definition, Tool


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
    definition: Definition
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

    async def secrets(self, workspace: str, connector_id: str, user: str) -> Sequence[SealedSecret]:
        """The shared ones (user ""), then those of `user`; never another user's."""
        ...

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that stored secrets are sealed with: a start compares them with its own."""
        ...


class ToolRows(Protocol):
    async def list(self, workspace: str | None = None) -> Sequence[Tool]: ...

    async def save(
        self, tools: Sequence[Tool], versions: Sequence[ToolVersion], removed: Sequence[Tool]
    ) -> None:
        """All or nothing: deletes `removed`, upserts by (workspace, identity, name), adds versions.

        A version belongs to the tool of its name in `tools`, so one save with versions is for one
        workspace and identity. A tool that exists keeps its `first_seen`; a removed one loses its
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

    async def forget(self, before: datetime) -> int: ...


class MetricRows(Protocol):
    async def load(self) -> Mapping[str, Mapping[str, Any]]:
        """The last numbers of each connector, by connector id."""
        ...

    async def save(self, numbers: Mapping[str, Mapping[str, Any]]) -> None:
        """One transaction. Numbers of a connector that is gone are dropped."""
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

    async def ping(self) -> None:
        """Raises `StoreUnavailable` when facts can be neither read nor written."""
        ...
