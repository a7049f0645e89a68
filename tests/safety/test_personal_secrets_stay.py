"""What a member brought for one program or host is not handed to what an admin puts in its place."""

import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from lures import document, open_lure
from pydantic import SecretStr

from dragoman import Hub
from dragoman.scope import Caller
from servers.hubs import carrying, open_hub, quick, until
from servers.processes import HERE, stdio
from servers.toolbox import digest

pytestmark = pytest.mark.anyio
MEMBER = Caller(workspace="acme", user="mia")
ADMIN = Caller(workspace="acme", user="ada", role="admin")
TOKEN = f"canary-of-the-member-{uuid4().hex}"
RAW: dict[str, Any] = {**quick(), **stdio("--label", "good")}
PROGRAM: dict[str, dict[str, Any]] = {
    "command": {"command": str(Path(sys.executable).parent / "python3")},
    "args": {"args": [*RAW["args"][:-1], "evil"]},
    "env": {"env": {"PYTHONPATH": "/evil"}},
    "a variable taken away": {"env": {"MODE": None}},
    "a secret variable": {"env": {"PYTHONPATH": "/evil"}, "secret": ["env:PYTHONPATH"]},
    "another value of a secret variable": {"env": {"API_KEY": "another"}},
    "cwd": {"cwd": str(HERE)},
}


async def brings(hub: Hub, name: str) -> None:
    view = await hub.acting_for(MEMBER).credentials.set("tools", {name: SecretStr(TOKEN)})
    assert view.state == "ready", view


@pytest.mark.parametrize("change", PROGRAM)
async def test_another_program_is_not_given_it(tmp_path: Path, change: str) -> None:
    env = {"MODE": "a", "API_KEY": "of all"}
    async with open_hub(tmp_path) as hub:
        await hub.acting_for(ADMIN).connectors.add(
            "tools", shared=True, connect=False, personal=["env:TOKEN"], env=env, **RAW
        )
        await brings(hub, "env:TOKEN")
        assert (await hub.acting_for(MEMBER).call("mcp_tools_environment")).result["digests"][
            "TOKEN"
        ] == digest(TOKEN)
        await hub.acting_for(ADMIN).connectors.update("tools", **PROGRAM[change])
        output = await hub.acting_for(MEMBER).call("mcp_tools_environment")
        assert output.error is not None
        assert output.error.code == "needs_auth"
        await until(lambda: carrying(TOKEN) == set())
        assert (await hub.acting_for(MEMBER).credentials.get("tools")).present == ()
        await brings(hub, "env:TOKEN")
        assert (await hub.acting_for(MEMBER).call("mcp_tools_environment")).ok, "brought again, it serves"


@pytest.mark.parametrize("field", ["url", "transport", "headers", "auth", "a secret header"])
async def test_another_server_is_not_sent_it(tmp_path: Path, field: str) -> None:
    async with open_lure() as (_, lure), open_hub(tmp_path) as hub:
        changes: dict[str, dict[str, Any]] = {
            "url": {"url": f"{lure.url}/evil/mcp"},
            "transport": {"transport": "sse"},
            "headers": {"headers": {"Host": "evil"}},
            "auth": {"auth": {"kind": "apikey", "header": "X-Evil"}},
            "a secret header": {"headers": {"X-Token": "another"}},
        }
        await hub.acting_for(ADMIN).connectors.add(
            "tools",
            shared=True,
            connect=False,
            personal=["auth"],
            url=f"{lure.url}/mcp",
            headers={"X-Token": "of all"},
            **quick(),
        )
        await brings(hub, "auth")
        assert TOKEN in str(lure.seen)
        lure.seen.clear()
        await hub.acting_for(ADMIN).connectors.update("tools", **changes[field])
        view = await hub.acting_for(MEMBER).connectors.connect("tools")
        assert view.status.state == "needs_auth"
        assert TOKEN not in str(lure.seen)


@pytest.mark.parametrize("field", ["openapi", "server"])
async def test_another_service_is_not_sent_it(tmp_path: Path, field: str) -> None:
    async with open_lure() as (_, lure), open_hub(tmp_path) as hub:
        lure.documents = {"/good.json": document(lure.url), "/evil.json": document(f"{lure.url}/evil")}
        changes: dict[str, dict[str, Any]] = {
            "openapi": {"openapi": f"{lure.url}/evil.json"},
            "server": {"server": f"{lure.url}/evil"},
        }
        await hub.acting_for(ADMIN).connectors.add(
            "tools",
            shared=True,
            connect=False,
            openapi=f"{lure.url}/good.json",
            auth={"kind": "bearer"},
            personal=["auth"],
            **quick(),
        )
        await brings(hub, "auth")
        assert (await hub.acting_for(MEMBER).call("mcp_tools_look")).ok
        assert TOKEN in str(lure.seen)
        lure.seen.clear()
        await hub.acting_for(ADMIN).connectors.update("tools", **changes[field])
        output = await hub.acting_for(MEMBER).call("mcp_tools_look")
        assert output.error is not None
        assert output.error.code == "needs_auth"
        assert TOKEN not in str(lure.seen)


async def test_what_leads_nowhere_else_ends_nothing(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        facts: dict[str, Any] = {**RAW, "personal": ["env:TOKEN"], "env": {"API_KEY": "of all"}}
        await hub.acting_for(ADMIN).connectors.add("tools", shared=True, connect=False, **facts)
        await brings(hub, "env:TOKEN")
        harmless: dict[str, Any] = {"request_timeout": 9, "approval": "always", "personal": ["env:TOKEN"]}
        await hub.acting_for(ADMIN).connectors.update("tools", description="ours", **harmless)
        await hub.acting_for(ADMIN).connectors.update("tools", env={"API_KEY": "of all"}, args=RAW["args"])
        await hub.acting_for(ADMIN).connectors.replace("tools", connect=False, **facts)
        assert (await hub.acting_for(MEMBER).call("mcp_tools_environment")).result["digests"][
            "TOKEN"
        ] == digest(TOKEN)
