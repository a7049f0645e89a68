"""What the REST door answers of connectors, tools and calls. A secret appears by its name only."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from dragoman.catalog import ToolChanges, ToolInfo
from dragoman.catalog.connector_tools import CatalogState
from dragoman.connections.source import State
from dragoman.connector import Era, Kind, Origin, Policy, Transport
from dragoman.hub import ConnectorView
from dragoman.store import CallRecord, ToolVersion
from dragoman.tool import ToolState
from dragoman.web.shape import Shape, Sorted


class StatusShape(Shape):
    state: State
    cause: str | None
    hint: str | None
    attempt: int
    next_attempt: datetime | None
    since: datetime | None
    era: Era | None
    pid: int | None
    in_flight: int
    node: str | None
    reconnects: int
    garbage_lines: int
    stderr: list[str]


class MetricsShape(Shape):
    calls: int
    succeeded: int
    failed: int
    rejected: int
    cached: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    last_error: str | None
    last_error_at: datetime | None
    last_call_at: datetime | None
    connects: int
    reconnects: int
    reuse_rate: float | None
    connect_average_ms: float | None
    connect_last_ms: float | None
    cost: float


class BoxShape(Shape):
    """How a server that is a program is boxed, and what it may reach. `missing` says why it is not boxed,
    `sent` and `received` are bytes through its proxy on this machine since Dragoman was started.
    """

    mode: str
    network: str
    mounts: list[str]
    missing: str | None
    sent: int
    received: int
    text: str


class BoxNeedShape(Shape):
    """What a server seems to lack in its box: `value`, with which the setting becomes all of `becomes`."""

    setting: Literal["mounts", "network"]
    value: str
    cause: str
    becomes: list[str]


class BoxHomeShape(Shape):
    """A home of a connector's boxes: one for each identity, which is told by a digest."""

    identity: str
    path: str
    bytes: int


class BoxHomesShape(Shape):
    homes: list[BoxHomeShape]


class ClearedShape(Shape):
    bytes: int


class ConnectorShape(Shape):
    """`secrets` holds names such as `env:TOKEN`; their values never leave.

    `tier` says whose it is: the whole installation's, the workspace's, or the user's own. `notices` is
    what was done with what was just given: a secret in an argument or address is kept encrypted. `needs` is
    what a program that was just tried seems to lack in its box.
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
    created_at: datetime
    updated_at: datetime
    status: StatusShape
    catalog: CatalogState
    tools: int
    box: BoxShape | None
    skipped: list[str]
    notices: list[str]
    needs: list[BoxNeedShape]
    metrics: MetricsShape


class ConnectorsShape(Shape):
    connectors: list[ConnectorShape]


class AnnotationsShape(Shape):
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None


class ToolShape(Shape):
    """`cause` is why it is unavailable: its connector cannot be reached now."""

    name: str
    connector: str
    original_name: str
    title: str | None
    description: str
    state: ToolState
    cause: str | None
    enabled: bool
    is_mcp: bool
    version: int
    accepted_version: int
    annotations: AnnotationsShape
    tokens: int


class SearchHitShape(ToolShape):
    """`score` orders the hits of one answer; it means nothing beside that of another."""

    score: float


class VersionShape(Shape):
    """`diff` tells what changed since the version before."""

    version: int
    fingerprint: str
    seen_at: datetime
    diff: str


class ToolDetailShape(ToolShape):
    alias: str
    catalog: CatalogState
    fingerprint: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    allowed_callers: Sorted
    approval: Policy | None
    required_capabilities: Sorted
    cost: float
    cache_ttl: float
    first_seen: datetime
    versions: list[VersionShape]


class ToolsShape(Shape):
    tools: list[ToolShape]


class ToolChangeShape(Shape):
    tool: str
    version: int
    is_blocked: bool
    diff: str


class ToolChangesShape(Shape):
    """What a refresh found; `skipped` says which tools cannot be offered, and why."""

    connector: str
    added: list[str]
    changed: list[ToolChangeShape]
    removed: list[str]
    unchanged: int
    skipped: list[str]


class CallErrorShape(Shape):
    code: str
    message: str
    retryable: bool
    hint: str | None
    cause: str | None
    retry_after: float | None
    connector: str | None
    tool: str | None
    time: datetime


class CallMetadataShape(Shape):
    """`handle` reads the whole of a result that was cut: GET /api/results/{handle}.

    `duration_ms` is without `waited_ms`, the time that people took to answer. `cost` is in dollars.
    """

    request_id: str
    connector: str | None
    original_name: str | None
    version: int | None
    duration_ms: float
    waited_ms: float
    content_type: str | None
    truncated: bool
    handle: str | None
    size: int | None
    cached: bool
    attempts: int
    warnings: list[str]
    cost: float


class OutputShape(Shape):
    """What came of a call. A call that failed has `ok: false` and an error."""

    ok: bool
    metadata: CallMetadataShape
    result: Any
    error: CallErrorShape | None
    content: list[dict[str, Any]]


class CallShape(Shape):
    id: str
    tool: str
    connector: str | None
    ok: bool
    code: str | None
    message: str | None
    duration_ms: float
    attempts: int
    way: str
    started_at: datetime


class CallsShape(Shape):
    calls: list[CallShape]


class HealthShape(Shape):
    status: str


class ProblemShape(Shape):
    """RFC 9457, with Dragoman's own code, a hint for a person, and whether to try again."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str | None
    cause: str | None
    retryable: bool


def connector_view(view: ConnectorView) -> ConnectorShape:
    connector = view.connector
    configuration = connector.configuration
    return ConnectorShape.of(
        connector,
        tier="user" if connector.owner else "workspace" if connector.workspace else "app",
        transport=configuration.wire if connector.kind == "mcp" else None,
        configuration=configuration.model_dump(mode="json", exclude={"secrets"}),
        secrets=configuration.secrets,
        status=view.status,
        catalog=view.catalog,
        tools=view.tools,
        box=view.box,
        skipped=view.skipped,
        notices=view.notices,
        needs=view.needs,
        metrics=view.metrics,
    )


def tool_view(info: ToolInfo) -> ToolShape:
    return ToolShape.of(info.tool, **_tool_facts(info))


def tool_hit(info: ToolInfo, score: float) -> SearchHitShape:
    return SearchHitShape.of(info.tool, **_tool_facts(info), score=score)


def tool_detail(info: ToolInfo, versions: Sequence[ToolVersion]) -> ToolDetailShape:
    definition = info.tool.definition
    return ToolDetailShape.of(
        info.tool,
        **_tool_facts(info),
        alias=info.alias,
        catalog=info.catalog,
        input_schema=definition.input_schema,
        output_schema=definition.output_schema,
        versions=versions,
    )


def _tool_facts(info: ToolInfo) -> dict[str, Any]:
    definition = info.tool.definition
    return {
        "connector": info.tool.slug,
        "title": definition.title,
        "description": definition.description,
        "annotations": definition.annotations,
        "state": info.state,
        "cause": info.cause,
        "tokens": info.tokens,
    }


def changes_view(changes: ToolChanges) -> ToolChangesShape:
    return ToolChangesShape.of(
        changes,
        connector=changes.slug,
        added=[tool.name for tool in changes.added],
        changed=[
            ToolChangeShape.of(change, tool=change.tool.name, version=change.tool.version)
            for change in changes.changed
        ],
        removed=[tool.name for tool in changes.removed],
    )


def call_view(record: CallRecord) -> CallShape:
    return CallShape.of(record, connector=record.slug)
