"""The sample servers: what `hub.connectors.add` takes.

`sample` leads to one process that serves all of them by HTTP, for tests of something else than how they start
and end; `sample_program` and `open_tasks` are processes of their own.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dragoman import Hub
from dragoman.examples import examples
from patience import deadline, patient
from servers.hubs import quick
from servers.processes import HttpProcess

SERVERS = examples() / "servers"


@cache
def _host() -> HttpProcess:
    """Started by the first test that wants a sample; gone with this process."""
    host = HttpProcess(Path(tempfile.mkdtemp(prefix="dragoman-samples-")), program="sample_host.py")
    host.start()
    return host


def sample(name: str, data: Path) -> dict[str, Any]:
    """`tracker`, `chat`, `email` or `tasks`, with what they keep in this folder."""
    url = f"{_host().origin}/{name}/{str(data).encode().hex()}"
    if name == "tasks":
        return quick(kind="openapi", openapi=url)
    return quick(url=f"{url}/mcp", transport="http")


def sample_program(name: str, data: Path) -> dict[str, Any]:
    """The stdio samples `tracker`, `chat` and `email`, as people start them."""
    where = ["--mailbox", str(data / "mailbox.json")] if name == "email" else ["--data", str(data)]
    data.mkdir(parents=True, exist_ok=True)
    return quick(
        command=sys.executable,
        args=[str(SERVERS / f"{name}_server.py"), *where],
        mounts=[f"{data}:rw"],
        connect_timeout=patient(20),
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


async def add_every_sample(hub: Hub, data: Path) -> None:
    """All four as connectors `email`, `tracker`, `chat` and `tasks`."""
    for name in ("email", "tracker", "chat", "tasks"):
        await hub.connectors.add(name, **sample(name, data))
