"""A service with an OpenAPI document: each of its operations is a tool."""

import asyncio
import subprocess
import sys

from dragoman import Hub
from dragoman.examples import examples

SERVICE = [sys.executable, str(examples() / "servers" / "tasks_service.py"), "--data", "tasks"]


async def main(url: str) -> None:
    async with Hub() as hub:
        await hub.connectors.add_or_update("tasks", kind="openapi", openapi=url)
        print([tool.original_name for tool in hub.tools.list("tasks")])
        output = await hub.call("mcp_tasks_create_task", {"title": "Water the plants"})
        print(output.result["title"] if output.ok else output.error)


# Any service does that says what it can at an address such as https://…/openapi.json.
with subprocess.Popen(SERVICE, stdout=subprocess.PIPE, text=True) as service:  # noqa: S603 - ours
    assert service.stdout is not None
    try:
        asyncio.run(main(service.stdout.readline().strip()))
    finally:
        service.terminate()
