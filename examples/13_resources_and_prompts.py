"""Resources and prompts: what servers let read, and the texts that they keep for their users."""

import asyncio
import sys

from dragoman import Hub
from dragoman.examples import examples

SERVER = examples() / "servers" / "booking_server.py"


async def main() -> None:
    async with Hub() as hub:
        await hub.connectors.add_or_update("booking", command=sys.executable, args=[str(SERVER)])
        # Of all connectors; `missing` says whose server did not answer.
        listed = await hub.resources.list()
        print([one.uri for one in listed], dict(listed.missing))

        read = await hub.resources.read("booking+booking://menu")
        print(read.text)  # what is too large is cut, and `hub.result(read.handle)` has the whole

        for prompt in await hub.prompts.list("booking"):
            print(prompt.name, [one.name for one in prompt.arguments])
        filled = await hub.prompts.get("booking__invite", {"guest": "Ada"})
        print(filled.messages[0].role, "/", filled.messages[0].text)


asyncio.run(main())
