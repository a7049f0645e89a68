"""Progress and elicitation: the server tells how far it is, and asks a person in the middle of a call."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from dragoman import Elicitation, Hub, Progress
from dragoman.examples import examples

SERVER = examples() / "servers" / "booking_server.py"


def show(progress: Progress) -> None:
    print(f"{progress.progress:g} of {progress.total:g}: {progress.message}")


async def answer(asked: Elicitation) -> Mapping[str, Any] | None:
    """Ask a person here, and say which connector asks; None declines."""
    print(f"{asked.connector} asks: {asked.message}", list((asked.fields or {})["properties"]))
    return {"name": "Ada"}


async def main() -> None:
    async with Hub(on_elicitation=answer) as hub:
        await hub.connectors.add_or_update("booking", command=sys.executable, args=[str(SERVER)])
        output = await hub.call("mcp_booking_book-table", {"seats": 2}, on_progress=show)
        print(output.result if output.ok else output.error)


asyncio.run(main())
