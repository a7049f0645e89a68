"""Users with limits, callers at once, and a process of its own that calls when it is told to.

As a program: `crowd.py HOME URL CALLERS` opens a hub, says `ready`, waits for a line, lets all callers
call at once and prints how many of their calls ran. With `hold` as a fourth word the tool never ends.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from dragoman import Caller, Hub, Settings
from dragoman.connector import Configuration, Connector
from dragoman.people import Preferences, User, UserLimits, Workspace
from dragoman.store import open_store
from dragoman.tool import Tool, ToolCall, ToolDefinition, ToolOutput
from patience import patient

ADA = Caller(workspace="acme", user="ada")


async def put_user(url: str, caller: Caller = ADA, **limits: Any) -> None:
    """A workspace and one user of it, limited by an admin."""
    async with open_store(url) as store:
        if await store.people.find_workspace(caller.workspace) is None:
            await store.people.put_workspace(Workspace(id=caller.workspace, name=caller.workspace))
        known = await store.people.find_user(caller.workspace, caller.user)
        user = known or User(id=caller.user, workspace=caller.workspace, name=caller.user)
        await store.people.put_user(replace(user, limits=UserLimits(**limits)))


def own_limits(**limits: Any) -> Preferences:
    return Preferences(limits=UserLimits(**limits))


def made_connector(workspace: str = "acme", **configuration: Any) -> Connector:
    facts = Configuration(command="shop", **configuration)
    return Connector(id="id-shop", workspace=workspace, owner="", slug="shop", configuration=facts)


def made_tool(cost: float = 0.0) -> Tool:
    definition = ToolDefinition(original_name="echo")
    return Tool(
        name="mcp_shop_echo",
        workspace="acme",
        connector_id="id-shop",
        slug="shop",
        definition=definition,
        cost=cost,
    )


def made_call(cost_limit: float | None = None) -> ToolCall:
    return ToolCall(tool="mcp_shop_echo", cost_limit=cost_limit)


def soon() -> float:
    """A deadline on the event loop's clock."""
    return asyncio.get_running_loop().time() + patient(5)


async def called_at_once(hub: Hub, callers: int, caller: Caller = ADA) -> list[ToolOutput]:
    return await asyncio.gather(*(hub.acting_for(caller).call("work") for _ in range(callers)))


async def away_from_the_end_of_the_hour() -> None:
    """A test that counts calls of this hour must not run into the next one."""
    if (left := 3600 - time.time() % 3600) < patient(20):
        await asyncio.sleep(left + 0.1)


@contextmanager
def crowd_process(home: Path, url: str, callers: int, *words: str) -> Generator[subprocess.Popen[str]]:
    """Ready to call; gone with the block."""
    command = [sys.executable, __file__, str(home), url, str(callers), *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}  # for `patience`
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert out_of(process).readline().strip() == "ready"
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def out_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


async def main(home: str, url: str, callers: str, word: str = "") -> None:
    ran = 0

    async def work() -> str:
        nonlocal ran
        ran += 1
        if word == "hold":
            print("holding", flush=True)
            await asyncio.Event().wait()
        await asyncio.sleep(0.01)
        return "done"

    async with Hub(Settings(home=Path(home), database_url=url)) as hub:
        hub.add_tool(work)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        outputs = await called_at_once(hub, int(callers))
        assert ran == sum(output.ok for output in outputs)
        print(ran, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
