"""An export taken into an empty home gives the same connectors."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.connector import Connector
from servers.hubs import open_hub
from servers.processes import stdio

pytestmark = pytest.mark.anyio

SECRET = "s3cret-of-the-export"
BEARER = "b3arer-of-the-export"


async def fill(hub: Hub) -> None:
    add = hub.connectors.add
    await add(
        "my_tools", **stdio(), env={"API_TOKEN": SECRET, "MODE": "x"}, connect=False, description="Tools"
    )
    await add("far", url="http://127.0.0.1:9/mcp", bearer=BEARER, headers={"X-Tenant": "7"}, connect=False)
    await add("keyed", url="http://127.0.0.1:9/sse", api_key=SECRET, api_key_header="X-Own", connect=False)
    await add("off", **stdio(), connect=False, request_timeout=5, retry={"tries": 1}, isolation="shared")
    await hub.connectors.disable("off")
    await add("service", kind="openapi", openapi="http://127.0.0.1:9", connect=False, select={"tags": ["a"]})
    await hub.imports.apply(['{"name": "m", "connectors": ["far"]}'])


def comparable(connector: Connector, leave_out: set[str]) -> dict[str, Any]:
    configuration = connector.configuration.model_dump(exclude=leave_out)
    beside = (connector.slug, connector.aliases, connector.description, connector.enabled)
    return {**configuration, "beside": beside}


async def contents(hub: Hub, *leave_out: str) -> list[dict[str, Any]]:
    return [
        comparable(view.connector, {*leave_out})
        for view in await hub.connectors.list()
        if view.connector.kind != "native"
    ]


async def test_an_export_with_secrets_gives_equal_connectors(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "one") as hub:
        await fill(hub)
        before, agents = await contents(hub), await hub.imports.agents.list()
        text = await hub.exports.dragoman(include_secrets=True)
        assert SECRET in text
        assert BEARER in text
    async with open_hub(tmp_path / "two") as hub:
        steps = await hub.imports.apply([text], connect=False)
        assert {step.action for step in steps} == {"add"}
        assert await contents(hub) == before
        assert await hub.imports.agents.list() == agents
        assert await hub.exports.dragoman(include_secrets=True) == text


async def test_an_export_without_secrets_says_which_are_missing(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "one") as hub:
        await fill(hub)
        before = await contents(hub, "secrets")
        text = await hub.exports.dragoman()
        assert SECRET not in text
        assert BEARER not in text
        assert {step.action for step in await hub.imports.plan([text])} == {"unchanged"}
    async with open_hub(tmp_path / "two") as hub:
        steps = await hub.imports.apply([text])
        assert {step.name: step.missing for step in steps if step.missing} == {
            "my-tools": ("env:API_TOKEN",),
            "far": ("auth",),
            "keyed": ("auth",),
        }
        assert await contents(hub, "secrets") == before
        assert (await hub.connectors.get("far")).status.state == "disconnected"


async def test_exported_servers_are_read_again(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "one") as hub:
        await fill(hub)
        bare, full = await hub.exports.mcp_servers(), await hub.exports.mcp_servers(include_secrets=True)
    assert SECRET not in bare
    assert json.loads(bare)["mcpServers"]["my-tools"]["env"] == {"MODE": "x", "API_TOKEN": "${API_TOKEN}"}
    async with open_hub(tmp_path / "two") as hub:
        await hub.imports.apply([full], connect=False)
        mine = (await hub.connectors.get("my-tools")).connector.configuration
        assert (mine.env, mine.secrets) == ({"MODE": "x"}, ("env:API_TOKEN",))
        far = (await hub.connectors.get("far")).connector.configuration
        assert (far.headers, far.secrets) == ({"X-Tenant": "7"}, ("header:Authorization",))
        assert not (await hub.connectors.get("off")).connector.enabled


async def test_secrets_of_the_whole_workspace_are_nobodys_to_export(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        app = Caller(user="")
        await hub.acting_for(app).connectors.add("app", **stdio(), env={"API_TOKEN": SECRET}, connect=False)
        text = await hub.exports.dragoman(include_secrets=True)
        assert '"app"' in text
        assert SECRET not in text
