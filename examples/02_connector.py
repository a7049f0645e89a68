"""A connector from a command: said at each start, looked at, called; a failure is a value with a hint."""

import asyncio
import sys

from dragoman import Hub
from dragoman.examples import examples

SERVER = examples() / "servers" / "email_server.py"


async def main() -> None:
    async with Hub() as hub:
        # A program says what it needs; only what differs from before is changed.
        for _ in range(2):
            done = await hub.connectors.add_or_update(
                "inbox", command=sys.executable, args=[str(SERVER), "--mailbox", "mailbox.json"]
            )
            print(done.change)

        view = await hub.connectors.get("inbox")
        print(view.status.state, view.tools)
        for tool in hub.tools.list("inbox"):
            print(tool.name, "reads" if tool.definition.annotations.read_only else "changes")

        # Nothing is raised for a call that fails: the output says why, and what to do.
        output = await hub.call("mcp_inbox_read-emails", {"limit": "many"})
        if output.error is not None:
            print(output.error.code, "/", output.error.message, "/", output.error.hint)

        await hub.connectors.remove("inbox")


asyncio.run(main())
