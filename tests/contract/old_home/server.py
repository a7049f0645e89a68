"""The MCP server of the old home: raw JSON-RPC over stdio, standard library only.

Kept beside the database that knows its tools: their definitions must never change, or what was approved
for them would no longer hold. `send` writes to the file that OLD_HOME_JOURNAL names.
"""

import hashlib
import json
import os
import sys
from typing import Any

Json = dict[str, Any]

TEXT: Json = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NAME: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS: list[Json] = [
    {
        "name": "send",
        "description": "Sends a note.",
        "inputSchema": TEXT,
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
    {
        "name": "digest",
        "description": "The SHA-256 of one of its environment variables.",
        "inputSchema": NAME,
        "annotations": {"readOnlyHint": True},
    },
]


def called(name: str, arguments: Json) -> str:
    if name == "digest":
        return hashlib.sha256(os.environ.get(arguments["name"], "").encode()).hexdigest()
    with open(os.environ["OLD_HOME_JOURNAL"], "a") as journal:
        journal.write(arguments["text"] + "\n")
    return f"sent {arguments['text']}"


def answered(method: str, params: Json) -> Json | None:
    match method:
        case "initialize":
            version = params.get("protocolVersion", "2025-06-18")
            info = {"name": "old-home", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            text = called(params["name"], params.get("arguments", {}))
            return {"content": [{"type": "text", "text": text}]}
        case "ping":
            return {}
        case _:
            return None


for line in sys.stdin:
    message: Json = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
    result = answered(message["method"], message.get("params") or {})
    if result is None:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
