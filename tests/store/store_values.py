"""Values to store, with everything that a test does not care about filled in."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from dragoman.connector import Configuration, Connector
from dragoman.store import CallRecord, KeptResult, SealedSecret, ToolVersion
from dragoman.tool import Annotations, Tool, ToolDefinition

NOON = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=UTC)
NOON_IN_ROME = NOON.astimezone(timezone(timedelta(hours=2)))


def a_connector(slug: str = "time", **facts: Any) -> Connector:
    defaults: dict[str, Any] = {
        "id": f"con_{slug}",
        "workspace": "local",
        "owner": "owner",
        "slug": slug,
        "configuration": Configuration(command="uvx", args=("mcp-server-time",), env={"TZ": "UTC"}),
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Connector(**(defaults | facts))


def a_tool(name: str = "mcp_time_now", **facts: Any) -> Tool:
    definition = ToolDefinition(
        original_name="now",
        title="Now",
        description="Says what time it is.",
        input_schema={"type": "object", "properties": {"zone": {"type": "string"}}},
        annotations=Annotations(read_only=True),
    )
    defaults: dict[str, Any] = {
        "name": name,
        "workspace": "local",
        "connector_id": "con_time",
        "slug": "time",
        "definition": definition,
        "fingerprint": definition.fingerprint,
        "first_seen": NOON,
    }
    return Tool(**(defaults | facts))


def a_version(tool: Tool, version: int = 1, diff: str = "") -> ToolVersion:
    return ToolVersion(
        tool=tool.name,
        version=version,
        fingerprint=tool.fingerprint,
        definition=tool.definition,
        diff=diff,
        seen_at=NOON,
    )


def a_secret(name: str = "env:TOKEN", **facts: Any) -> SealedSecret:
    defaults: dict[str, Any] = {
        "workspace": "local",
        "user": "",
        "connector_id": "con_time",
        "name": name,
        "key_id": "0123abcd",
        "nonce": b"\x00" * 12,
        "ciphertext": b"\x00\xffsealed",
    }
    return SealedSecret(**(defaults | facts))


def a_call(id: str = "call_1", **facts: Any) -> CallRecord:
    defaults: dict[str, Any] = {
        "id": id,
        "workspace": "local",
        "user": "owner",
        "thread": None,
        "agent": None,
        "way": "direct",
        "tool": "mcp_time_now",
        "connector_id": "con_time",
        "slug": "time",
        "ok": True,
        "code": None,
        "message": None,
        "duration_ms": 1.25,
        "attempts": 1,
        "started_at": NOON,
        "trace": {"span": "abc"},
    }
    return CallRecord(**(defaults | facts))


def a_result(handle: str = "res_1", **facts: Any) -> KeptResult:
    defaults: dict[str, Any] = {
        "handle": handle,
        "workspace": "local",
        "user": "owner",
        "tool": "mcp_time_now",
        "content_type": "application/json",
        "body": b"\x00\x01" * 100_000,
        "created_at": NOON,
    }
    return KeptResult(**(defaults | facts))
