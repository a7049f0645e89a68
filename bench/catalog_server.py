"""A stdio server with the tools of a catalogue file; each call brings made-up rows. Standard library only."""

import json
import sys
from pathlib import Path
from typing import Any


def rows(arguments: dict[str, Any], count: int) -> list[dict[str, Any]]:
    repository = f"{arguments.get('owner', 'octocat')}/{arguments.get('repo', 'xyne')}"
    return [
        {
            "number": number,
            "title": f"Something is not right in part {number} of {repository}",
            "state": "OPEN" if number % 3 else "CLOSED",
            "user": {"login": f"person-{number % 7}"},
            "labels": ["bug", "help wanted"][: number % 3],
            "body": "It happens when the second step is taken before the first one has come to its end.",
            "html_url": f"https://github.com/{repository}/issues/{number}",
        }
        for number in range(count)
    ]


def answer(method: str, params: dict[str, Any], tools: list[Any], count: int) -> dict[str, Any] | None:
    match method:
        case "initialize":
            version = params.get("protocolVersion", "2025-06-18")
            about = {"name": "catalogue", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": tools}
        case "tools/call":
            found = {"issues": rows(params.get("arguments") or {}, count), "totalCount": count}
            text = json.dumps(found)
            return {"content": [{"type": "text", "text": text}], "structuredContent": found}
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    tools = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    count = int(sys.argv[2])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {}, tools, count)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": f"{message['method']} is not known"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
