"""A hub with a real server whose tools read, write and destroy, and what a test waits for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman import Caller, Hub, Settings, ToolOutput
from dragoman.hub.approvals import ApprovalView
from servers.hubs import QUICK, runtime_of, until
from servers.processes import stdio

READS, WRITES, DESTROYS = "mcp_raw_echo", "mcp_raw_add", "mcp_raw_send"
SUM = {"a": 1, "b": 2}
AGENT = Caller(user="anna", agent="mailer", way="agent")
ANNA = Caller(user="anna")
BERT = Caller(user="bert")
ADMIN = Caller(user="zoe", role="admin")


def in_thread(caller: Caller, thread: str) -> Caller:
    return replace(caller, thread=thread)


@asynccontextmanager
async def open_asking(
    home: Path, url: str, *, wait: float = 20.0, journal: Path | None = None, **facts: Any
) -> AsyncGenerator[Hub]:
    """With the connector `raw` of the whole workspace; the second time it is there already."""
    async with Hub(Settings(home=home, database_url=url, approval_wait=wait)) as hub:
        if "raw" not in {view.connector.slug for view in await hub.connectors.list()}:
            words = ["--journal", str(journal)] if journal else []
            await hub.connectors.add("raw", **QUICK, **stdio(*words), shared=True, **facts)
        yield hub


async def questions(hub: Hub, count: int = 1, caller: Caller = ADMIN) -> list[ApprovalView]:
    """The open ones, once there are this many; oldest first."""

    async def are_there() -> bool:
        return len(await hub.acting_for(caller).approvals.list("pending")) == count

    await until(are_there)
    return (await hub.acting_for(caller).approvals.list("pending"))[::-1]


async def question(hub: Hub) -> str:
    return (await questions(hub))[0].approval.id


def code(output: ToolOutput) -> str | None:
    return output.error.code if output.error else None


async def asks(hub: Hub, tool: str, arguments: dict[str, Any], caller: Caller) -> bool:
    """Whether a call waits for a person. The question is left open; the caller goes away."""
    before = {one.approval.id for one in await hub.acting_for(ADMIN).approvals.list("pending")}
    call = asyncio.ensure_future(hub.acting_for(caller).call(tool, arguments))

    async def is_decided() -> bool:
        now = {one.approval.id for one in await hub.acting_for(ADMIN).approvals.list("pending")}
        # Who goes before they know that it was asked takes the question along.
        return call.done() or not (now - before).isdisjoint(runtime_of(hub).approvals.awaited._events)

    await until(is_decided)
    was_asked = not call.done()
    call.cancel()
    await asyncio.wait([call])
    return was_asked
