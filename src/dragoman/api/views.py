"""Values of the hub as the JSON that `shapes` describes. A secret appears by its name only."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dragoman.api.shapes import (
    CallShape,
    ConnectorShape,
    MetricsShape,
    StatusShape,
    ToolChangesShape,
    ToolDetailShape,
    ToolShape,
)
from dragoman.catalog import ToolChanges, ToolInfo
from dragoman.connections.source import ConnectionStatus
from dragoman.hub import ConnectorView
from dragoman.store import CallRecord, ToolVersion
from dragoman.telemetry.metrics import ConnectorMetrics


def connector_view(view: ConnectorView) -> ConnectorShape:
    connector = view.connector
    configuration = connector.configuration
    return {
        "id": connector.id,
        "slug": connector.slug,
        "tier": "user" if connector.owner else "workspace" if connector.workspace else "app",
        "origin": connector.origin,
        "aliases": list(connector.aliases),
        "description": connector.description,
        "kind": connector.kind,
        "transport": configuration.wire if connector.kind == "mcp" else None,
        "enabled": connector.enabled,
        "configuration": configuration.model_dump(mode="json", exclude={"secrets"}),
        "secrets": list(configuration.secrets),
        "revision": connector.revision,
        "era": connector.era,
        "server": _table(connector.server),
        "instructions": connector.instructions,
        "created_at": connector.created_at.isoformat(),
        "updated_at": connector.updated_at.isoformat(),
        "status": status_view(view.status),
        "catalog": view.catalog,
        "tools": view.tools,
        "skipped": list(view.skipped),
        "metrics": metrics_view(view.metrics),
    }


def status_view(status: ConnectionStatus) -> StatusShape:
    return {
        "state": status.state,
        "cause": status.cause,
        "hint": status.hint,
        "attempt": status.attempt,
        "next_attempt": _time(status.next_attempt),
        "since": _time(status.since),
        "era": status.era,
        "pid": status.pid,
        "in_flight": status.in_flight,
        "reconnects": status.reconnects,
        "garbage_lines": status.garbage_lines,
        "stderr": list(status.stderr),
    }


def metrics_view(metrics: ConnectorMetrics) -> MetricsShape:
    return {
        "calls": metrics.calls,
        "succeeded": metrics.succeeded,
        "failed": metrics.failed,
        "rejected": metrics.rejected,
        "cached": metrics.cached,
        "average_ms": metrics.average_ms,
        "p50_ms": metrics.p50_ms,
        "p95_ms": metrics.p95_ms,
        "last_error": metrics.last_error,
        "last_error_at": _time(metrics.last_error_at),
        "last_call_at": _time(metrics.last_call_at),
        "connects": metrics.connects,
        "reconnects": metrics.reconnects,
        "reuse_rate": metrics.reuse_rate,
        "connect_average_ms": metrics.connect_average_ms,
        "connect_last_ms": metrics.connect_last_ms,
    }


def tool_view(info: ToolInfo) -> ToolShape:
    tool = info.tool
    marks = tool.definition.annotations
    return {
        "name": tool.name,
        "connector": tool.slug,
        "original_name": tool.original_name,
        "title": tool.definition.title,
        "description": tool.definition.description,
        "state": info.state,
        "enabled": tool.enabled,
        "is_mcp": tool.is_mcp,
        "version": tool.version,
        "accepted_version": tool.accepted_version,
        "annotations": {
            "read_only": marks.read_only,
            "destructive": marks.destructive,
            "idempotent": marks.idempotent,
            "open_world": marks.open_world,
        },
        "tokens": info.tokens,
    }


def tool_detail(info: ToolInfo, versions: Sequence[ToolVersion]) -> ToolDetailShape:
    tool = info.tool
    return {
        **tool_view(info),
        "alias": info.alias,
        "catalog": info.catalog,
        "fingerprint": tool.fingerprint,
        "input_schema": dict(tool.definition.input_schema),
        "output_schema": _table(tool.definition.output_schema),
        "allowed_callers": sorted(tool.allowed_callers),
        "approval": tool.approval,
        "required_capabilities": sorted(tool.required_capabilities),
        "cost": tool.cost,
        "cache_ttl": tool.cache_ttl,
        "first_seen": tool.first_seen.isoformat(),
        "versions": [
            {
                "version": version.version,
                "fingerprint": version.fingerprint,
                "seen_at": version.seen_at.isoformat(),
                "diff": version.diff,
            }
            for version in versions
        ],
    }


def changes_view(changes: ToolChanges) -> ToolChangesShape:
    return {
        "connector": changes.slug,
        "added": [tool.name for tool in changes.added],
        "changed": [
            {
                "tool": change.tool.name,
                "version": change.tool.version,
                "is_blocked": change.is_blocked,
                "diff": change.diff,
            }
            for change in changes.changed
        ],
        "removed": [tool.name for tool in changes.removed],
        "unchanged": changes.unchanged,
        "skipped": list(changes.skipped),
    }


def call_view(record: CallRecord) -> CallShape:
    return {
        "id": record.id,
        "tool": record.tool,
        "connector": record.slug,
        "ok": record.ok,
        "code": record.code,
        "message": record.message,
        "duration_ms": record.duration_ms,
        "attempts": record.attempts,
        "way": record.way,
        "started_at": record.started_at.isoformat(),
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _table(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if value is None else dict(value)
