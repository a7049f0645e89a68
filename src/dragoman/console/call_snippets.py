"""One call as what people paste elsewhere: curl, Python, the command. Pure; knows no token."""

import json
import shlex
from collections.abc import Mapping
from typing import Any


def snippets_of(tool: str, arguments: Mapping[str, Any], address: str) -> dict[str, str]:
    """By the name that a button has. A token is left to the environment of who pastes it."""
    body = json.dumps({"tool": tool, "arguments": arguments}, ensure_ascii=False)
    given = json.dumps(arguments, ensure_ascii=False)
    curl = [
        f"curl -X POST {shlex.quote(f'{address}/api/call')}",
        '-H "Authorization: Bearer $DRAGOMAN_TOKEN"',
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(body)}",
    ]
    python = [
        "from dragoman import Hub",
        "",
        "async with Hub() as hub:",
        f"    output = await hub.call({tool!r}, {dict(arguments)!r})",
        "    print(output.result)",
    ]
    command = f"dragoman call {shlex.quote(tool)}"
    return {
        "curl": " \\\n  ".join(curl),
        "Python": "\n".join(python),
        "CLI": f"{command} --json-args {shlex.quote(given)}" if arguments else command,
    }
