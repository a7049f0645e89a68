"""What the REST door answers, as types: the source of the OpenAPI document. Values are made in `views`."""

from typing import Any, Literal

from typing_extensions import TypedDict

from dragoman.catalog.connector_tools import CatalogState
from dragoman.connections.source import State
from dragoman.connector import Era, Kind, Origin, Policy, Transport
from dragoman.tool import ToolState


class StatusShape(TypedDict):
    state: State
    cause: str | None
    hint: str | None
    attempt: int
    next_attempt: str | None
    since: str | None
    era: Era | None
    pid: int | None
    in_flight: int
    reconnects: int
    garbage_lines: int
    stderr: list[str]


class MetricsShape(TypedDict):
    calls: int
    succeeded: int
    failed: int
    rejected: int
    cached: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    last_error: str | None
    last_error_at: str | None
    last_call_at: str | None
    connects: int
    reconnects: int
    reuse_rate: float | None
    connect_average_ms: float | None
    connect_last_ms: float | None


class ConnectorShape(TypedDict):
    """`secrets` holds names such as `env:TOKEN`; their values never leave.

    `tier` says whose it is: the whole installation's, the workspace's, or the user's own.
    """

    id: str
    slug: str
    tier: Literal["app", "workspace", "user"]
    origin: Origin
    aliases: list[str]
    description: str
    kind: Kind
    transport: Transport | None
    enabled: bool
    configuration: dict[str, Any]
    secrets: list[str]
    revision: int
    era: Era | None
    server: dict[str, Any] | None
    instructions: str | None
    created_at: str
    updated_at: str
    status: StatusShape
    catalog: CatalogState
    tools: int
    skipped: list[str]
    metrics: MetricsShape


class ConnectorsShape(TypedDict):
    connectors: list[ConnectorShape]


class AnnotationsShape(TypedDict):
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None


class ToolShape(TypedDict):
    name: str
    connector: str
    original_name: str
    title: str | None
    description: str
    state: ToolState
    enabled: bool
    is_mcp: bool
    version: int
    accepted_version: int
    annotations: AnnotationsShape
    tokens: int


class VersionShape(TypedDict):
    """`diff` tells what changed since the version before."""

    version: int
    fingerprint: str
    seen_at: str
    diff: str


class ToolDetailShape(ToolShape):
    alias: str
    catalog: CatalogState
    fingerprint: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    allowed_callers: list[str]
    approval: Policy | None
    required_capabilities: list[str]
    cost: float
    cache_ttl: float
    first_seen: str
    versions: list[VersionShape]


class ToolsShape(TypedDict):
    tools: list[ToolShape]


class ToolChangeShape(TypedDict):
    tool: str
    version: int
    is_blocked: bool
    diff: str


class ToolChangesShape(TypedDict):
    """What a refresh found; `skipped` says which tools cannot be offered, and why."""

    connector: str
    added: list[str]
    changed: list[ToolChangeShape]
    removed: list[str]
    unchanged: int
    skipped: list[str]


class CallErrorShape(TypedDict):
    code: str
    message: str
    retryable: bool
    hint: str | None
    cause: str | None
    retry_after: float | None
    connector: str | None
    tool: str | None
    time: str


class CallMetadataShape(TypedDict):
    """`handle` reads the whole of a result that was cut: GET /api/results/{handle}."""

    request_id: str
    connector: str | None
    original_name: str | None
    version: int | None
    duration_ms: float
    content_type: str | None
    truncated: bool
    handle: str | None
    size: int | None
    cached: bool
    attempts: int
    warnings: list[str]


class OutputShape(TypedDict):
    """What came of a call. A call that failed has `ok: false` and an error."""

    ok: bool
    metadata: CallMetadataShape
    result: Any
    error: CallErrorShape | None
    content: list[dict[str, Any]]


class CallShape(TypedDict):
    id: str
    tool: str
    connector: str | None
    ok: bool
    code: str | None
    message: str | None
    duration_ms: float
    attempts: int
    way: str
    started_at: str


class CallsShape(TypedDict):
    calls: list[CallShape]


class HealthShape(TypedDict):
    status: str


class ProblemShape(TypedDict):
    """RFC 9457, with Dragoman's own code, a hint for a person, and whether to try again."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str | None
    cause: str | None
    retryable: bool
