"""The interface of a source of tools, whatever its kind, and the status of its connections."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol

from pydantic import SecretStr

from dragoman.connections.bearer import Bearer
from dragoman.connections.deadline import Deadline
from dragoman.connector import Connector, Era, Kind
from dragoman.hints import Hinted
from dragoman.scope import Caller
from dragoman.tool import AdmittedCall, RawResult, Tool, ToolDefinition

State = Literal["disconnected", "connecting", "connected", "reconnecting", "needs_auth", "error", "disabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatus(Hinted):
    """The state of one connection, as people see it. `node` holds it, where several could."""

    connector_id: str
    slug: str
    identity: str
    state: State
    cause: str | None = None
    command_hint: str | None = None
    attempt: int = 0
    next_attempt: datetime | None = None
    since: datetime | None = None
    era: Era | None = None
    pid: int | None = None
    in_flight: int = 0
    reconnects: int = 0
    stderr: tuple[str, ...] = ()
    garbage_lines: int = 0
    node: str | None = None


@dataclass(frozen=True, slots=True)
class ServerNotice:
    """A notification of an MCP server: one of its lists changed, or the resource at `uri`."""

    kind: Literal["tools", "prompts", "resources", "resource"]
    uri: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Everything one connection says it offers."""

    tools: tuple[ToolDefinition, ...]
    era: Era | None = None
    instructions: str | None = None
    server: Mapping[str, Any] | None = None
    skipped: tuple[str, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why hooks hold back tools until a person accepts them, by original names."""

    def limited(self, most: int) -> "Listing":
        """The first `most` tools, and the word that there are more."""
        if len(self.tools) <= most:
            return self
        said = f"every tool after the first {most:,}: raise max_tools to have more"
        return replace(self, tools=self.tools[:most], skipped=(*self.skipped, said))


class SourceChannel(Protocol):
    """What a source may tell and ask in the middle of a request; the road fills it for every call."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What may be asked, as MCP declares it."""
        ...

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the client says beside its request, for the server."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Answers that came with a request which is sent again; see `ClientChannel`."""
        ...

    @property
    def retries(self) -> bool: ...

    @property
    def task(self) -> str | None:
        """The server's task that this call began and has not ended: it is followed, and not begun again."""
        ...

    @property
    def is_left(self) -> bool:
        """Whether the call is entered again later, so that its end here is not the end of its task."""
        ...

    async def keep_task(self, task: str) -> None: ...

    def note_pending(self, asked: Mapping[str, Any]) -> None: ...

    def note_refused(self, code: int, message: str, data: Any) -> None: ...

    def note_admitted(self, admitted: AdmittedCall) -> None: ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer; an elicitation that nobody answers is declined. Else raises `InputRequired`."""
        ...

    def decline(self, params: Mapping[str, Any], reason: str) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCall:
    """One call as a source sees it. The deadline covers everything; the channel leads to who is asked."""

    connector: Connector
    tool: Tool
    arguments: Mapping[str, Any]
    caller: Caller
    deadline: Deadline
    channel: SourceChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """One request about resources, prompts or completion, as a server of MCP sees it."""

    connector: Connector
    method: str
    params: Mapping[str, Any]
    caller: Caller
    deadline: Deadline
    channel: SourceChannel


class Source(Protocol):
    """One kind of connectors. The road calls; the catalog lists; the doors look and steer."""

    async def call(self, call: SourceCall) -> RawResult:
        """Raises a `ToolFault`, `ServerFault`, `LimitReached` or `OwnFault`; retries only what is safe."""
        ...

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        """Connects where needed. Raises as `call` does."""
        ...

    async def list_tools_again(self, connector: Connector, identity: str) -> Listing | None:
        """Over the connection that this identity has open; None when it has none."""
        ...

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus: ...

    async def disconnect(self, connector: Connector, caller: Caller) -> ConnectionStatus: ...

    async def retire(self, connector: Connector, *, is_removed: bool = False) -> None:
        """Closes every connection opened for this or an older revision; it returns within two seconds.

        Of one that `is_removed` none is opened again, whatever its revision: who changed it at the same
        moment may know a newer one.
        Calls under way finish in the background, up to their deadlines; so does a server that is slow to end.
        """
        ...

    async def close_for_user(self, workspace: str, user: str, connector_id: str | None = None) -> None:
        """The same for every connection that is held for this user, or for those of one connector."""
        ...

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus: ...


Sources = Mapping[Kind, Source]
"""The source of each kind of connectors."""


class ConnectionObserver(Protocol):
    """Who is told when a link changes. Declared here, filled in the hub: the one arrow that goes up."""

    def state_changed(self, connector: Connector, status: ConnectionStatus) -> None: ...

    def tools_changed(self, connector: Connector, identity: str) -> None: ...

    def connected(self, connector: Connector, identity: str, seconds: float, is_reconnect: bool) -> None: ...

    def reused(self, connector: Connector) -> None: ...


class Secrets(Protocol):
    """Where a connection gets the secrets of its connector, decrypted, just before it needs them."""

    async def reveal(self, connector: Connector, identity: str) -> Mapping[str, SecretStr]:
        """The shared ones, and those of the identity's user in their place where they exist."""
        ...

    def bearer(self, connector: Connector, identity: str) -> Bearer | None:
        """Where the connector's credential changes by itself: who gives the one in force."""
        ...
