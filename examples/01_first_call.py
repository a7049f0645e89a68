"""The first call: a tool server is started, and one of its tools called."""

import asyncio
import sys

from dragoman import Hub
from dragoman.examples import examples

SERVER = examples() / "servers" / "email_server.py"


async def main() -> None:
    async with Hub() as hub:
        await hub.connectors.add_or_update(
            "mail", command=sys.executable, args=[str(SERVER), "--mailbox", "mailbox.json"]
        )
        output = await hub.call("mcp_mail_read-emails", {"limit": 1})
        print(output.result if output.ok else output.error)


asyncio.run(main())
