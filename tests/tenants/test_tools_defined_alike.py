"""Two workspaces use the same server: their tools are defined alike, and nothing is told of the other's."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.scope import Caller
from servers.account_server import AccountServer, tool
from servers.hubs import open_hub, quick

pytestmark = pytest.mark.anyio
SCHEMAS: dict[str, dict[str, Any]] = {
    "outside": {"type": "object", "properties": {"a": {"$ref": "https://schemas.example.com/a.json"}}},
    "unusable": {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
    "strict": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    "open": {"type": "object", "properties": {"number": {"type": "integer"}}},
}


def listed(token: str | None) -> list[dict[str, Any]]:
    return [tool(name) | {"inputSchema": schema} for name, schema in SCHEMAS.items()]


@pytest.mark.parametrize("name", SCHEMAS)
async def test_what_is_said_of_arguments_names_nothing_of_another_workspace(
    tmp_path: Path, name: str
) -> None:
    async with AccountServer(listed) as server, open_hub(tmp_path) as hub:
        said: list[str] = []
        for word in ("merger", "garden"):
            caller = Caller(workspace=f"workspace-{word}", user=f"user-{word}")
            await hub.acting_for(caller).connectors.add(f"{word}-plans", **quick(url=server.url))
            output = await hub.acting_for(caller).call(f"mcp_{word}-plans_{name}", {"nmber": f"value-{word}"})
            error = output.error
            said.append(f"{error and (error.message, error.hint)} {output.metadata.warnings}")
        assert "merger" not in said[1]
        assert said[1] == said[0].replace("merger", "garden"), "each is told of their own"
    if name == "outside":
        assert "mcp_garden-plans_outside" in said[1]
        assert "https://schemas.example.com/a.json" in said[1]
