"""What is callable, one request to call it, and what came of it: frozen values that travel."""

import json
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from os import urandom
from typing import Any, Literal, Protocol, cast
from unicodedata import category

import orjson

from dragoman.connector import Pin, Policy
from dragoman.errors import DragomanError, InputRequired, InvalidArguments
from dragoman.hints import Hinted
from dragoman.hook_rule import BundleRules
from dragoman.scope import Caller, Way

Json = Any
Schema = Mapping[str, Any]
ToolState = Literal["ready", "changed", "disabled", "unavailable"]
NEVER_ACCEPTED = 0
HELD_BACK = -1
"""In place of an accepted version: a hook found fault with the tool, and no person has accepted it since."""
DEFAULT_CALLERS: frozenset[Way] = frozenset({"direct", "agent", "mcp"})


class _RandomIds:
    """Random words of 24 hex digits. The system is asked for many at once: each question costs 20 µs."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def take(self) -> str:
        if not self._words:
            digits = urandom(12 * 256).hex()
            self._words = [digits[place : place + 24] for place in range(0, len(digits), 24)]
        return self._words.pop()


_ids = _RandomIds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """What a tool says of itself. Absent means unknown, and unknown is never taken as harmless."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @property
    def is_safe_to_repeat(self) -> bool:
        return self.read_only is True or self.idempotent is True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as its server declares it; its fingerprint is what a version stands for."""

    original_name: str
    title: str | None = None
    description: str = ""
    input_schema: Schema = field(default_factory=lambda: {"type": "object"})
    output_schema: Schema | None = None
    annotations: Annotations = Annotations()
    meta: Mapping[str, Any] | None = None

    @property
    def fingerprint(self) -> str:
        """A hash over name, title, description, schemas and annotations; key order does not matter."""
        facts = {
            "name": self.original_name,
            "title": self.title,
            "description": self.description,
            "input": self.input_schema,
            "output": self.output_schema,
            "annotations": [
                self.annotations.read_only,
                self.annotations.destructive,
                self.annotations.idempotent,
                self.annotations.open_world,
            ],
        }
        return sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One callable thing of the catalog.

    `identity` is empty when the list is the same for everybody who may use the connector;
    otherwise the list belongs to that identity alone. `accepted_version` is the version that a
    person has accepted; on a pinned connector only that one may be called. `cost` is in dollars a call.
    `bundled` is there where a bundle shows it: name, slug and definition are the bundle's then.
    """

    name: str
    workspace: str
    connector_id: str
    slug: str
    definition: ToolDefinition
    version: int = 1
    accepted_version: int = 1
    fingerprint: str = ""
    identity: str = ""
    enabled: bool = True
    is_mcp: bool = True
    cache_ttl: float = 0.0
    allowed_callers: frozenset[Way] = DEFAULT_CALLERS
    required_capabilities: frozenset[str] = frozenset()
    approval: Policy | None = None
    cost: float = 0.0
    first_seen: datetime = field(default_factory=lambda: datetime.now(UTC))
    revision: int = field(default=0, compare=False, repr=False)
    bundled: "BundledTool | None" = field(default=None, repr=False)

    @property
    def original_name(self) -> str:
        return self.definition.original_name

    @property
    def title(self) -> str:
        """What people call it."""
        return self.definition.title or self.original_name

    @property
    def only_reads(self) -> bool:
        """Whether it says so of itself; what says nothing may change something. No bundle says it for it."""
        own = self.own.definition.annotations.read_only is True
        return own and self.definition.annotations.read_only is True

    @property
    def own(self) -> "Tool":
        """The tool as its connector has it: what is called, approved, counted and recorded."""
        return self if self.bundled is None else self.bundled.base

    def awaits_acceptance(self, pin: Pin) -> bool:
        """Whether a person must look at it before it may be called: by the connector's pin, or for a hook."""
        if self.accepted_version == HELD_BACK:
            return True
        return pin == "block" and self.version != self.accepted_version

    def may_be_used_by(self, caller: Caller) -> bool:
        """Whether it is within the caller's capabilities, which know it by its connector's names."""
        own, bundle = self.own, None if self.bundled is None else self.bundled.bundle
        return caller.may_use(
            own.slug, own.name, own.required_capabilities, only_reads=self.only_reads, bundle=bundle
        )

    def is_open_to(self, way: Way) -> bool:
        """Whether it may be called by this way. Where nobody chose, code may call what only reads."""
        if way == "code" and self.allowed_callers == DEFAULT_CALLERS:
            return self.only_reads
        return way in self.allowed_callers

    @property
    def model_description(self) -> str:
        """What a model reads: it always begins with where the tool comes from."""
        text = self.definition.description
        return f"[MCP:{self.slug}] {text}".rstrip() if self.is_mcp else text


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledTool:
    """How a bundle shows a tool: `base` is the tool itself, `bundle` the capability that admits it.

    `fixed` is sent whatever the caller says, `defaults` where the caller says nothing, both by the tool's own
    names; `renamed` has those by the names that are shown. `closed` are names that nobody may send. `rules`
    are the bundle's hooks.
    """

    bundle: str
    base: Tool
    fixed: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    defaults: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    closed: frozenset[str] = frozenset()
    rules: BundleRules = field(default_factory=BundleRules)

    def arguments(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """What is sent for arguments in the names that are shown."""
        if closed := self.closed.intersection(given):
            raise InvalidArguments(
                f"there is no parameter {min(closed)[:100]!r}", hint="use those of the tool's schema"
            )
        own = {self.renamed.get(name, name): value for name, value in given.items()}
        return {**self.defaults, **own, **self.fixed}


@dataclass(frozen=True, slots=True)
class AdmittedCall:
    """What a call was let through for: exactly this tool, with exactly these arguments."""

    fingerprint: str
    arguments_hash: str

    def covers(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        return self == AdmittedCall.of(tool, arguments)

    @classmethod
    def of(cls, tool: Tool, arguments: Mapping[str, Any]) -> "AdmittedCall":
        return cls(tool.fingerprint, arguments_hash(arguments))


class ClientChannel(Protocol):
    """The way back to the client whose call this is: to tell it of progress, and to ask it.

    `capabilities` are MCP's, for what it can be asked. A person has `patience` seconds to answer, None is as
    long as the question lasts.
    `inputs` are its answers where it `retries` a request that asked for input; `pending` is then what the
    server asked for, and `refused` the server's own no (code, message, data), for the door to pass on.
    A request that asked was `admitted`; the one that `continues` it is a part of the same call, for which
    nobody is asked for leave again.
    Where it `approves`, its own person is asked whether a call may be made; a yes that is given elsewhere is
    waited for `approval_wait` seconds (None: as the installation says). `approval` is the question that the
    call waits for, or ended with.
    `meta` is what the client says beside its request, for the server (`_meta` of MCP).
    """

    capabilities: Mapping[str, Any]
    meta: Mapping[str, Any]
    inputs: Mapping[str, Any]
    retries: bool
    wants_progress: bool
    patience: float | None
    approves: bool
    approval_wait: float | None
    approval: str | None
    pending: Mapping[str, Any] | None
    refused: tuple[int, str, Any] | None
    admitted: AdmittedCall | None
    continues: AdmittedCall | None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Any], connector: str) -> Mapping[str, Any]:
        """Its answer to the connector's server. Raises `InputRequired` when it cannot be asked."""
        ...


class NoChannel:
    """Fills `ClientChannel` where nothing is told and nobody asked; the others are made from it."""

    capabilities: Mapping[str, Any] = {}
    meta: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] = {}
    retries = False
    wants_progress = False
    patience: float | None = None
    approves = False
    approval_wait: float | None = None

    def __init__(self) -> None:
        self.approval: str | None = None
        self.pending: Mapping[str, Any] | None = None
        self.refused: tuple[int, str, Any] | None = None
        self.admitted: AdmittedCall | None = None
        self.continues: AdmittedCall | None = None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        return None

    async def ask(self, method: str, params: Mapping[str, Any], connector: str) -> Mapping[str, Any]:
        raise InputRequired(f"this client cannot be asked for {method}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a call has come, as its server tells it."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """What a server asks a person in the middle of a call: values for `fields`, or a visit to `url`.

    `fields` is a JSON schema of an object. Who answers should be told which `connector` asks.
    """

    connector: str
    tool: str = ""
    message: str
    fields: Schema | None = None
    url: str | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any], connector: str, tool: str = "") -> "Elicitation":
        """From the parameters of MCP's `elicitation/create`."""
        schema: Any = params.get("requestedSchema")
        url: Any = params.get("url")
        is_url = params.get("mode") == "url" and isinstance(url, str)
        return cls(
            connector=connector,
            tool=tool,
            message=str(params.get("message") or "The server asks for input."),
            fields=None if is_url else cast("Schema", schema or {"type": "object"}),
            url=url if is_url else None,
        )

    def accepted(self, values: Any) -> Mapping[str, Any]:
        """The answer as MCP has it; where the person was sent to an address, no value belongs to it."""
        return {"action": "accept"} if self.url is not None else {"action": "accept", "content": values}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangedMessage:
    """What was sent to a server or received from it, without secrets: JSON-RPC, or the parts of HTTP.

    `milliseconds` are those since the call left.
    """

    direction: Literal["sent", "received"]
    message: Mapping[str, Any]
    milliseconds: float


class OnMessage(Protocol):
    """A function that is shown what a call and its server say to each other."""

    def __call__(self, message: ExchangedMessage, /) -> None: ...


class OnProgress(Protocol):
    """A function, plain or async, that hears how far a call has come."""

    def __call__(self, progress: Progress, /) -> Awaitable[None] | None: ...


class OnElicitation(Protocol):
    """A function, plain or async, that answers a server in the middle of a call.

    It returns the values of `fields`, or for a `url` any mapping, such as `{}`; None declines.
    """

    def __call__(
        self, asked: Elicitation, /
    ) -> Awaitable[Mapping[str, Any] | None] | Mapping[str, Any] | None: ...


class CallObserver(Protocol):
    """Who follows a call for somebody that must remember how far it came: the journal of a run.

    `name` is that of the call, the same when it is entered again after a crash; once it `is_over` it will not
    be entered again. One that `has_departed` before is not sent again: its server's task is followed.
    """

    name: str
    has_departed: bool

    @property
    def is_over(self) -> bool: ...

    def awaits(self, approval: str) -> None:
        """A person is being asked; nothing has left."""
        ...

    def goes_on(self) -> None:
        """The person has answered, or nobody will."""
        ...

    async def departs(self, repeatable: bool) -> None:
        """The request is about to leave. What raises here stops it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One request to execute one tool. `timeout` narrows the connector's own, never widens it.

    A tool that costs more than `cost_limit` is refused. `patience` is how many seconds it may wait for a
    person's yes, where that is not what the installation says.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = field(default_factory=lambda: f"call_{_ids.take()}")
    timeout: float | None = None
    cost_limit: float | None = None
    patience: float | None = None
    channel: ClientChannel | None = field(default=None, compare=False, repr=False)
    on_message: OnMessage | None = field(default=None, compare=False, repr=False)
    observer: CallObserver | None = field(default=None, compare=False, repr=False)


def json_bytes(value: Json) -> bytes:
    """The same bytes for the same value, in whatever order its keys came."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # integers beyond 64 bits and half surrogates
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def arguments_hash(arguments: Mapping[str, Any]) -> str:
    """The same for the same arguments; another for one changed character."""
    return sha256(json_bytes(arguments)).hexdigest()


_OF_ONE_HOP = frozenset({"progressToken", "traceparent", "tracestate"})
_NOT_PASSED_ON = ("dragoman/", "io.modelcontextprotocol/")


def passed_on(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of MCP's `_meta` goes on from a client to a server, or back.

    What the protocol itself says there is between neighbours. What begins with `dragoman/` is Dragoman's own
    word, which nobody else may say in its place.
    """
    return {
        name: value
        for name, value in meta.items()
        if name not in _OF_ONE_HOP and not name.startswith(_NOT_PASSED_ON)
    }


_LITERAL = re.compile(r"|null|true|false|-?[\d.eE+-]+")
_UNSEEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def visible_json(arguments: Mapping[str, Any]) -> str:
    """JSON in which every character can be seen: what hides or turns text round is written as its code."""
    return _seen(json.dumps(dict(arguments), ensure_ascii=False, indent=2))


def visible_values(arguments: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Names and values one by one, where all values are plain; none where one is a list or an object.

    A text that could be taken for something else, or has what cannot be seen, is written as JSON.
    """
    if any(isinstance(value, list | dict) for value in arguments.values()):
        return ()
    return [
        (_seen(json.dumps(name, ensure_ascii=False)[1:-1]), _seen_value(value))
        for name, value in arguments.items()
    ]


def _seen(text: str) -> str:
    return "".join(json.dumps(one)[1:-1] if one != "\n" and category(one) in _UNSEEN else one for one in text)


def _seen_value(value: Any) -> str:
    written = _seen(json.dumps(value, ensure_ascii=False))
    if not isinstance(value, str):
        return written
    is_plain = value == value.strip() and written[1:-1] == value.replace("\n", "\\n") and '"' not in value
    return value if is_plain and not _LITERAL.fullmatch(value) else written


@dataclass(frozen=True, slots=True, kw_only=True)
class CallError(Hinted):
    """Why a call has no result: for a program (code, retryable) and for a person (message, hint)."""

    code: str
    message: str
    retryable: bool = False
    command_hint: str | None = None
    cause: str | None = None
    retry_after: float | None = None
    connector: str | None = None
    tool: str | None = None
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))

    @classmethod
    def of(cls, error: DragomanError, *, connector: str | None, tool: str | None) -> "CallError":
        return cls(
            code=error.code,
            message=error.message,
            retryable=error.retryable,
            command_hint=error.command_hint,
            cause=error.cause,
            retry_after=error.retry_after,
            connector=connector,
            tool=tool,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMetadata:
    """Circumstances of a call. `handle` reads the rest of a result that was cut.

    `duration_ms` is without the time that people took to answer, which is `waited_ms`. `cost` is the price of
    the tool in dollars, where the call was made.
    """

    request_id: str
    connector: str | None = None
    original_name: str | None = None
    version: int | None = None
    duration_ms: float = 0.0
    waited_ms: float = 0.0
    content_type: str | None = None
    truncated: bool = False
    handle: str | None = None
    size: int | None = None
    cached: bool = False
    attempts: int = 1
    warnings: tuple[str, ...] = ()
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What came of a call. A tool's failure is a value here, never an exception."""

    ok: bool
    metadata: CallMetadata
    result: Json = None
    error: CallError | None = None
    content: tuple[Mapping[str, Any], ...] = ()
    # What begins with _ is no part of the output that people and programs read.
    _has_structured: bool = False
    _meta: Mapping[str, Any] | None = None

    @property
    def has_structured(self) -> bool:
        """Whether the source itself gave a structure; else `result` may be one that was read out of text."""
        return self._has_structured

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the source said beside the result: `_meta` of MCP."""
        return self._meta or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResult:
    """What a source answered before it is normalised: MCP's content blocks, whatever the source is."""

    content: tuple[Mapping[str, Any], ...] = ()
    structured: Json = None
    has_structured: bool = False
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
    attempts: int = 1
