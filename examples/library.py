"""Dragoman as a library: a server is declared, a function becomes a tool, both are called alike.

Run it with `python examples/library.py`; what it stores is in DRAGOMAN_HOME.
"""

import asyncio
import sys
from pathlib import Path

from dragoman import Hub

SERVER = Path(__file__).parent / "servers" / "email_server.py"


async def main() -> None:
    hub = Hub()

    @hub.tool
    def greet(name: str) -> str:
        """Greets somebody by name."""
        return f"Hello, {name}!"

    async with hub:
        # At each start a program says what it needs; only what differs is changed.
        for _ in range(2):
            done = await hub.connectors.add_or_update("mail", command=sys.executable, args=[str(SERVER)])
            print(done.change)
        output = await hub.call("greet", {"name": "Ann"})
        print(output.result)
        # Whatever goes wrong is in the output, with a hint in Python.
        output = await hub.call("gret")
        print(output.error.code if output.error else "")


asyncio.run(main())
