"""An agent: it reads a message, calls tools and answers. Offline; with a key, name a model in its place."""

import asyncio
import sys
from dataclasses import replace

from dragoman import Hub, Settings
from dragoman.examples import examples

SERVER = examples() / "servers" / "email_server.py"


async def main() -> None:
    # `offline` is built in and matches words; "anthropic:…", "openai:…" or "ollama:…" understand them.
    async with Hub(replace(Settings.load(), model="offline")) as hub:
        await hub.connectors.add_or_update(
            "mail", command=sys.executable, args=[str(SERVER), "--mailbox", "mailbox.json"]
        )
        run = await hub.ask("check my latest email")
        print(run.status, "/", run.answer)
        print("calls:", run.usage.calls)


asyncio.run(main())
