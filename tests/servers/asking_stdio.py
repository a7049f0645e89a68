"""A server of the 2025 era on stdin and stdout whose tools ask, and answer only what they were answered.

Several calls may be under way: what it asks does not say for which. `told` says what its client declared.
"""

import json
import sys
from typing import Any

TOOL = {
    "name": "rename",
    "description": "Asks for the new name of somebody.",
    "inputSchema": {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]},
    "annotations": {"readOnlyHint": True},
}
VISIT = {"name": "visit", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
TOLD = {**VISIT, "name": "told"}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    calls: dict[str, tuple[Any, str]] = {}
    wanted = int(sys.argv[1])
    declared: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        method, request_id, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            declared = params["capabilities"]
            facts = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            send(id=request_id, result={**facts, "serverInfo": {"name": "asking", "version": "1"}})
        elif method == "tools/list":
            send(id=request_id, result={"tools": [TOOL, VISIT, TOLD]})
        elif method == "tools/call" and params["name"] == "told":
            send(id=request_id, result={"content": [{"type": "text", "text": json.dumps(declared)}]})
        elif method == "tools/call" and params["name"] == "visit":
            calls["visit"] = (request_id, "it")
            asked = {
                "mode": "url",
                "message": "Please sign",
                "elicitationId": "e1",
                "url": "https://x.example/s",
            }
            send(id="visit", method="elicitation/create", params=asked)
        elif method == "tools/call":
            old = params["arguments"]["old"]
            calls[f"ask-{request_id}"] = (request_id, old)
            if len(calls) == wanted:  # all of them are under way now
                for name, (_, old) in calls.items():
                    asked = {"message": f"What is the new name of {old}?", "requestedSchema": SCHEMA}
                    send(id=name, method="elicitation/create", params=asked)
        elif method is None and request_id in calls:
            call, old = calls.pop(request_id)
            answer = message.get("result") or {}
            said = f"{old} is {answer['content']['name']}" if answer.get("content") else answer.get("action")
            send(id=call, result={"content": [{"type": "text", "text": f"{said}"}]})
        elif method is not None and request_id is not None:
            send(id=request_id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
