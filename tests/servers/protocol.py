"""What a server must say in each era of MCP: plain dictionaries. Standard library only."""

from typing import Any

Json = dict[str, Any]

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
PREFIX = "io.modelcontextprotocol/"
SERVER = {"name": "test-server", "version": "1.0"}
CAPABILITIES: Json = {"tools": {"listChanged": True}}
INSTRUCTIONS = "A server for tests."
LIST_CHANGED = "notifications/tools/list_changed"


def stamped(result: Json, **more: Any) -> Json:
    """A result as the 2026 era wants it."""
    return {**result, "resultType": "complete", "_meta": {f"{PREFIX}serverInfo": SERVER}, **more}


def initialize(params: Json) -> Json:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in HANDSHAKES else LEGACY,
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }


def discover() -> Json:
    return stamped(
        {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS},
        ttlMs=0,
        cacheScope="private",
    )


def tools_list(tools: list[Json], cursor: str | None, page: int, is_modern: bool) -> Json:
    first = int(cursor or 0)
    result: Json = {"tools": tools[first : first + page] if page else tools}
    if page and first + page < len(tools):
        result["nextCursor"] = str(first + page)
    return stamped(result, ttlMs=0, cacheScope="private") if is_modern else result


def acknowledged(subscription: Any, wanted: Json) -> Json:
    """The first frame of a `subscriptions/listen` stream."""
    honoured = {"toolsListChanged": True} if wanted.get("toolsListChanged") else {}
    return notification(
        "notifications/subscriptions/acknowledged",
        {"notifications": honoured, "_meta": {f"{PREFIX}subscriptionId": subscription}},
    )


def list_changed(subscription: Any = None) -> Json:
    if subscription is None:
        return notification(LIST_CHANGED, None)
    return notification(LIST_CHANGED, {"_meta": {f"{PREFIX}subscriptionId": subscription}})


def notification(method: str, params: Json | None) -> Json:
    message: Json = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def progress(token: Any, done: int, total: int) -> Json:
    return notification("notifications/progress", {"progressToken": token, "progress": done, "total": total})


def answer(request_id: Any, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error(request_id: Any, code: int, message: str, data: Any = None) -> Json:
    facts: Json = {"code": code, "message": message}
    if data is not None:
        facts["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": facts}


def no_handshake(request_id: Any, asked: Any) -> Json:
    """What a server of the 2026 era says to `initialize`."""
    return error(
        request_id, -32022, "Unsupported protocol version", {"supported": [MODERN], "requested": asked}
    )


def missing_envelope(params: Json) -> str | None:
    """What a request of the 2026 era lacks, or None."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return "params._meta is missing"
    for key in ("protocolVersion", "clientCapabilities"):
        if PREFIX + key not in meta:
            return f"params._meta lacks {PREFIX}{key}"
    return None if meta[PREFIX + "protocolVersion"] == MODERN else "wrong protocol version"
