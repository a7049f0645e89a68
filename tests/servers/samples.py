"""How tests start the sample servers: what `hub.connectors.add` takes, and the tasks service as a process.

Who starts the service ends it: `open_tasks` is a context manager.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman import Hub
from dragoman.examples import examples
from patience import deadline, patient
from servers.hubs import quick

SERVERS = examples() / "servers"


def sample(name: str, data: Path) -> dict[str, Any]:
    """The stdio samples: `tracker`, `chat` and `email`."""
    where = ["--mailbox", str(data / "mailbox.json")] if name == "email" else ["--data", str(data)]
    return quick(
        command=sys.executable, args=[str(SERVERS / f"{name}_server.py"), *where], connect_timeout=patient(20)
    )


@asynccontextmanager
async def open_tasks(data: Path) -> AsyncGenerator[tuple[str, asyncio.subprocess.Process]]:
    """The URL that it prints when it is ready, and its process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SERVERS / "tasks_service.py"), "--data", str(data), "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with deadline(30):
            url = (await process.stdout.readline()).decode().strip()
        yield url, process
    finally:
        if process.returncode is None:
            process.terminate()
        async with deadline(10):
            await process.communicate()


@asynccontextmanager
async def every_sample(hub: Hub, data: Path) -> AsyncGenerator[None]:
    """All four as connectors `email`, `tracker`, `chat` and `tasks`."""
    async with open_tasks(data) as (url, _):
        for name in ("email", "tracker", "chat"):
            await hub.connectors.add(name, **sample(name, data))
        await hub.connectors.add("tasks", kind="openapi", openapi=url, **quick())
        yield
