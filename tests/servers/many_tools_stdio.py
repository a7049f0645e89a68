"""A server with as many tools as its argument says, in pages of 200: JSON and no more, so it costs little."""

import json
import sys
from typing import Any

count = int(sys.argv[1])
text = "Reads record {0}, checks its invoice and sends the order of department {0}"
schema = {"type": "object", "properties": {"text": {"type": "string", "description": "what to look for"}}}
tools = [{"name": f"tool_{n}", "description": text.format(n), "inputSchema": schema} for n in range(count)]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    start = int((asked.get("params") or {}).get("cursor") or 0)
    page: dict[str, Any] = {"tools": tools[start : start + 200]}
    if start + 200 < count:
        page["nextCursor"] = str(start + 200)
    answers = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "many", "version": "1"},
        },
        "tools/list": page,
        "ping": {},
    }
    told = answers.get(asked["method"])
    answer = {"result": told} if told is not None else {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
