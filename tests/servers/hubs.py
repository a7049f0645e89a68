"""How fault tests open a hub with short times, wait for what must come true, and count what is left."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from dragoman import BoundHub, ConnectorView, Hub
from dragoman.hub.runtime import Runtime
from dragoman.settings import Settings
from migrated import put_sqlite
from patience import patient
from patience import until as until

SERVERS = Path(__file__).parent
QUICK: dict[str, Any] = {
    "connect_timeout": patient(5),
    "request_timeout": patient(5),
    "retry": {"tries": 3, "delay": 0.05, "factor": 2, "cap": 0.2},
    "health_interval": 0,
}
"""A connector that answers within seconds or not at all."""


def quick(**changes: Any) -> dict[str, Any]:
    """`QUICK` with some fields changed."""
    return {**QUICK, **changes}


@asynccontextmanager
async def open_hub(home: Path, **settings: Any) -> AsyncGenerator[Hub]:
    settings.setdefault("box_paths", (str(SERVERS),))
    given = Settings(home=home, **settings)
    if given.database_url is None:
        put_sqlite(home / "dragoman.db")
    async with Hub(given) as hub:
        yield hub


def spoil_store(home: Path) -> None:
    """The SQLite store of an open hub answers nothing any more.

    Written over in place: a file that is cut short under a connection that maps it kills the process.
    """
    # The shared memory too: else a connection may answer from what it has read before.
    for name in ("dragoman.db", "dragoman.db-wal", "dragoman.db-shm"):
        if (path := home / name).exists():
            with path.open("r+b") as file:
                file.write((b"this is no database " * 2000)[: path.stat().st_size])


def runtime_of(hub: BoundHub) -> Runtime:
    """What a hub is built of, for a test of what no door shows. Nothing else in the tests reaches in."""
    return hub._runtime


async def listed(hub: Hub) -> list[ConnectorView]:
    """The connectors that lead to a server; the native one is always there."""
    return [view for view in await hub.connectors.list() if view.connector.kind == "mcp"]


async def state_is(hub: Hub, slug: str, *states: str, within: float = 10.0) -> None:
    async def holds() -> bool:
        return (await hub.connectors.get(slug)).status.state in states

    await until(holds, within)


def children() -> set[int]:
    """Every process below this one, dead ones that nobody waited for included."""
    return {child.pid for child in psutil.Process().children(recursive=True)}


def carrying(canary: str) -> set[int]:
    """Every living process with this word in its environment, wherever it hangs in the tree."""
    found: set[int] = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if canary.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def open_channels() -> list[str]:
    """Pipes, sockets and process handles that this process holds."""
    held: list[str] = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue
        if target.startswith(("pipe:", "socket:", "anon_inode:[pidfd]")):
            held.append(target)
    return held
