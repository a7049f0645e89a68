"""Taking over what people already have: the dry run, the doing, doing it twice, and what collides."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.hub.imports import ImportStep
from servers.hubs import listed, open_hub, until
from servers.processes import stdio

pytestmark = pytest.mark.anyio

SECRET = "s3cret-of-the-import"


def servers(**entries: Any) -> str:
    return json.dumps({"mcpServers": entries})


def tool_server(**changes: Any) -> dict[str, Any]:
    return {**stdio(), "env": {"API_TOKEN": SECRET, "MODE": "test"}, **changes}


def actions(steps: list[ImportStep]) -> dict[str, str]:
    return {step.name: step.action for step in steps}


async def slugs(hub: Hub) -> list[str]:
    return [view.connector.slug for view in await listed(hub)]


async def test_a_pasted_file_works_at_once(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        (step,) = await hub.imports.apply([servers(my_tools=tool_server())])
        assert step.view is not None
        assert (step.action, step.view.status.state, step.view.connector.aliases) == (
            "add",
            "connected",
            ("my_tools",),
        )
        assert step.view.connector.configuration.secrets == ("env:API_TOKEN",)
        for name in ("mcp_my-tools_echo", "my_tools__echo"):
            assert (await hub.call(name, {"text": "hello"})).ok
        environment = await hub.call("mcp_my-tools_environment")
        assert "MODE" in str(environment.content)


async def test_a_dry_run_tells_everything_and_writes_nothing(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        text = servers(good=tool_server(), bad={"command": "no-such-program-here"}, worse={"x": 1})
        steps = await hub.imports.plan([text])
        assert actions(steps) == {"worse": "invalid", "good": "add", "bad": "invalid"}
        assert "no program" in next(step.reason for step in steps if step.name == "bad")
        assert SECRET not in repr(steps)
        assert await slugs(hub) == []


async def test_importing_twice_changes_nothing(tmp_path: Path) -> None:
    text = servers(
        tools=tool_server(),
        far={"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    )
    async with open_hub(tmp_path) as hub:
        await hub.imports.apply([text], connect=False)
        before = [view.connector for view in await listed(hub)]
        steps = await hub.imports.apply([text], replace=True)
        assert set(actions(steps).values()) == {"unchanged"}
        assert [view.connector for view in await listed(hub)] == before


async def test_a_conflict_names_what_differs_and_never_a_secret(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.imports.apply([servers(tools=tool_server())], connect=False)
        changed = tool_server(env={"API_TOKEN": f"{SECRET}-new", "MODE": "live"}, disabled=True)
        (step,) = await hub.imports.apply([servers(tools=changed)], connect=False)
        assert step.action == "conflict"
        assert step.differs == ("env.MODE", "secret env:API_TOKEN", "enabled")
        assert SECRET not in repr(step)
        view = await hub.connectors.get("tools")
        assert view.connector.configuration.env == {"MODE": "test"}


async def test_replace_puts_the_new_one_in_the_place_of_the_old(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        (first,) = await hub.imports.apply([servers(tools=tool_server())])
        (step,) = await hub.imports.apply([servers(tools={**stdio(), "env": {"MODE": "live"}})], replace=True)
        assert first.view is not None
        assert step.view is not None
        assert (step.action, step.view.connector.id) == ("replace", first.view.connector.id)
        assert step.view.connector.configuration.env == {"MODE": "live"}
        assert step.view.connector.configuration.secrets == ()
        assert (await hub.call("mcp_tools_echo", {"text": "x"})).ok


async def test_two_files_with_one_name_are_a_conflict_unless_they_agree(tmp_path: Path) -> None:
    one, other = servers(a=stdio(), b=stdio()), servers(a=stdio(), b=stdio("--x"))
    async with open_hub(tmp_path) as hub:
        steps = await hub.imports.plan([one, other])
        assert [step.action for step in steps] == ["add", "add", "unchanged", "conflict"]


async def test_inputs_are_asked_for_and_put_in_place_encrypted(tmp_path: Path) -> None:
    inputs = [{"type": "promptString", "id": "key", "description": "Key", "password": True}]
    text = json.dumps({"inputs": inputs, "servers": {"t": {**stdio(), "env": {"PLAIN": "${input:key}"}}}})
    async with open_hub(tmp_path) as hub:
        (step,) = await hub.imports.apply([text])
        assert (step.action, step.view, step.needs[0].description) == ("needs_input", None, "Key")
        (step,) = await hub.imports.apply([text], inputs={"key": SECRET}, connect=False)
        assert step.view is not None
        assert step.view.connector.configuration.secrets == ("env:PLAIN",)
        assert SECRET not in repr(step)


async def test_files_and_folders_are_read_and_one_bad_file_loses_no_other(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".vscode").mkdir(parents=True)
    (project / ".env").write_text(f"# variables\nexport FROM_FILE='{SECRET}'\nMODE=ignored\n")
    entry = {**stdio("${workspaceFolder}"), "env": {"MODE": "kept"}, "envFile": "${workspaceFolder}/.env"}
    (project / ".vscode/mcp.json").write_text(json.dumps({"servers": {"t": entry}}))
    agents = tmp_path / "agent_configs"
    agents.mkdir()
    (agents / "mailer.json").write_text('{"action_servers": ["t"]}')
    (agents / "broken.json").write_text("{")
    async with open_hub(tmp_path / "home") as hub:
        sources = [project / ".vscode/mcp.json", tmp_path / "none.json", agents]
        steps = await hub.imports.apply(sources, connect=False)
        assert [(step.kind, step.action) for step in steps] == [
            ("connector", "add"),
            ("file", "invalid"),
            ("file", "invalid"),
            ("agent", "add"),
        ]
        assert "No such file" in steps[1].reason
        configuration = (await hub.connectors.get("t")).connector.configuration
        assert configuration.args[-1] == str(project)
        assert (configuration.env, configuration.secrets) == ({"MODE": "kept"}, ("env:FROM_FILE",))
        assert [agent.connectors for agent in await hub.imports.agents.list()] == [("t",)]


async def test_agents_are_kept_and_their_conflicts_named(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        one, other = (json.dumps({"name": "m", "model": model, "connectors": ["a"]}) for model in "xy")
        assert actions(await hub.imports.apply([one])) == {"m": "add"}
        assert actions(await hub.imports.apply([one])) == {"m": "unchanged"}
        assert actions(await hub.imports.apply([other])) == {"m": "conflict"}
        assert (await hub.imports.agents.list())[0].model == "x"
        await hub.imports.apply([other], replace=True)
    async with open_hub(tmp_path) as hub:
        assert (await hub.imports.agents.list())[0].model == "y"


async def test_a_server_without_discovery_is_not_connected_at_import_nor_at_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    quiet = {"name": "quiet", **stdio("--log", str(log)), "auto_discover": False}
    async with open_hub(tmp_path) as hub:
        (step,) = await hub.imports.apply([json.dumps({"action_servers": [quiet]})])
        assert (step.action, step.view and step.view.status.state) == ("add", "disconnected")
        await hub.imports.apply([servers(talking=stdio())], connect=False)
    async with open_hub(tmp_path) as hub:
        await until(lambda: len(hub.tools.list("talking")) > 0, 10)
        assert (await hub.connectors.get("quiet")).status.state == "disconnected"
        assert not log.exists()
        await hub.connectors.connect("quiet")
        assert (await hub.call("mcp_quiet_echo", {"text": "x"})).ok


async def test_disabled_and_unreachable_servers_are_imported_too(tmp_path: Path) -> None:
    text = servers(off=tool_server(disabled=True), far={"url": "http://127.0.0.1:9/mcp"})
    seen: list[str] = []
    async with open_hub(tmp_path) as hub:
        steps = await hub.imports.apply([text], progress=lambda step: seen.append(step.name))
        states = {step.slug: step.view.status.state for step in steps if step.view}
        assert states["off"] == "disabled"
        assert states["far"] in ("error", "reconnecting")
        assert sorted(seen) == ["far", "off"]


async def test_what_is_not_taken_over_is_named_in_the_answer(tmp_path: Path) -> None:
    text = '{"agent_name": "bob", "action_server": "time", "colour": "red"}'
    async with open_hub(tmp_path) as hub:
        for steps in (await hub.imports.plan([text]), await hub.imports.apply([text])):
            assert [(step.name, step.warnings) for step in steps] == [("bob", ("not taken over: colour",))]
