"""In a program of its own, with nothing around it: what `asyncio.run` alone must be enough for."""

import asyncio
from contextvars import Context
from pathlib import Path

from dragoman import Hub
from dragoman.settings import Settings
from servers.hubs import quick, until
from servers.processes import stdio


def test_what_a_stdio_server_tells_unasked_is_heard(tmp_path: Path) -> None:
    failed: list[str] = []

    async def program() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, facts: failed.append(facts["message"]))
        async with Hub(Settings(home=tmp_path)) as hub:
            await hub.connectors.add("box", **quick(**stdio("--era", "2025")))
            assert (await hub.call("mcp_box_add_tool", {"name": "fresh"})).ok
            await until(lambda: any(tool.name == "mcp_box_fresh" for tool in hub.tools.list()))

    # Fresh: the test runner says for its own tests which library runs them.
    Context().run(asyncio.run, program())
    assert failed == []
