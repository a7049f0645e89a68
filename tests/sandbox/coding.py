"""A hub with a real MCP server and a sandbox of short limits; and a watch on the event loop."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path
from time import perf_counter
from typing import Any

from dragoman import Hub
from dragoman.hub.code import Code, make_sandbox
from dragoman.sandbox import CodeLimits
from dragoman.scope import Caller
from patience import patient
from servers.hubs import open_hub, quick, runtime_of
from servers.processes import stdio

SHORT = CodeLimits(execution=patient(1), wall=patient(10), memory=64 * 1024 * 1024, calls=20, output=8 * 1024)
FOR_CODE = ("echo", "add", "fail", "big", "sleep", "environment")


@asynccontextmanager
async def open_coding(hub: Hub, limits: CodeLimits = SHORT, **facts: Any) -> AsyncGenerator[Code]:
    runtime = copy(runtime_of(hub))
    async with make_sandbox(runtime, limits=limits, **facts) as runtime.sandbox:
        yield Code(runtime, hub.caller)


def as_caller(code: Code, caller: Caller) -> Code:
    return Code(code._runtime, caller)


async def add_raw(hub: Hub, slug: str = "raw") -> None:
    """The raw test server, and what of it code may call without asking."""
    await hub.connectors.add(slug, shared=True, **quick(**stdio("--journal", str(journal_of(hub)))))
    for name in FOR_CODE:
        await allow(hub, f"mcp_{slug}_{name}")


def journal_of(hub: Hub) -> Path:
    """What was executed is written there."""
    return hub.settings.home / "journal"


async def allow(hub: Hub, name: str) -> None:
    await hub.tools.configure(name, allowed_callers=["direct", "code"], approval="never")


@asynccontextmanager
async def open_workshop(
    home: Path, limits: CodeLimits = SHORT, **settings: Any
) -> AsyncGenerator[tuple[Hub, Code]]:
    async with open_hub(home, **settings) as hub:
        await add_raw(hub)
        async with open_coding(hub, limits) as code:
            yield hub, code


class Pauses:
    """The longest time for which the event loop did nothing else, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            started = perf_counter()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, perf_counter() - started)
