"""App configuration in files: read at start, watched, and written back."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.errors import InvalidConfig, NotFound
from dragoman.hub.configuration_files import START_LIMIT
from patience import patient
from servers.hubs import listed, open_hub, until
from servers.processes import stdio

pytestmark = pytest.mark.anyio


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))
    return path


def entry(name: str, *arguments: str, **facts: Any) -> dict[str, Any]:
    return {"name": name, **stdio(*arguments), **facts}


async def slugs(hub: Hub) -> list[str]:
    return [view.connector.slug for view in await listed(hub)]


async def test_servers_of_the_app_are_discovered_before_the_hub_opens(tmp_path: Path) -> None:
    file = write(tmp_path / "action_servers.json", [entry("my_tools"), entry("quiet", auto_discover=False)])
    async with open_hub(tmp_path, action_servers=file) as hub:
        tools, quiet = await listed(hub)
        assert (tools.connector.slug, tools.connector.owner, tools.tools > 0) == ("my-tools", "", True)
        assert (quiet.status.state, quiet.tools) == ("disconnected", 0)
        assert (await hub.call("my_tools__echo", {"text": "x"})).ok
        other = Caller(user="somebody-else")
        assert (await hub.acting_for(other).connectors.get("my-tools")).tools == tools.tools


async def test_a_second_start_changes_nothing_and_one_taken_out_meanwhile_is_gone(tmp_path: Path) -> None:
    file = write(tmp_path / "action_servers.json", [entry("a"), entry("b")])
    async with open_hub(tmp_path, action_servers=file) as hub:
        before = (await hub.connectors.get("a")).connector
    write(file, [entry("a")])
    async with open_hub(tmp_path, action_servers=file) as hub:
        assert await slugs(hub) == ["a"]
        assert (await hub.connectors.get("a")).connector.revision == before.revision
        assert (await hub.connectors.get("a")).connector.id == before.id
        assert not [tool for tool in hub.tools.list() if tool.slug == "b"]


async def test_a_change_of_the_file_is_seen_while_running(tmp_path: Path) -> None:
    file = write(tmp_path / "action_servers.json", [entry("a")])
    async with open_hub(tmp_path, action_servers=file) as hub:
        write(file, [entry("b")])

        async def is_changed() -> bool:
            return await slugs(hub) == ["b"] and len(hub.tools.list("b")) > 0

        await until(is_changed, 10)
        assert (await hub.call("mcp_a_echo", {"text": "x"})).error is not None


async def test_a_broken_file_takes_nothing_away(tmp_path: Path) -> None:
    file = write(tmp_path / "action_servers.json", [entry("a"), entry("b")])
    async with open_hub(tmp_path, action_servers=file) as hub:
        file.write_text("[{")
        await hub.configuration_files.sync()
        assert await slugs(hub) == ["a", "b"]
        assert "not valid JSON" in hub.configuration_files.problems[0].reason
        write(file, [entry("a", enabled="perhaps")])
        await hub.configuration_files.sync()
        assert await slugs(hub) == ["a"]
        file.unlink()
        await hub.configuration_files.sync()
        assert await slugs(hub) == ["a"]
    async with open_hub(tmp_path, action_servers=file) as hub:
        assert await slugs(hub) == ["a"]


async def test_without_app_configuration_nothing_is_touched(tmp_path: Path) -> None:
    file = write(tmp_path / "action_servers.json", [entry("a")])
    async with open_hub(tmp_path, action_servers=file):
        pass
    async with open_hub(tmp_path) as hub:
        assert await slugs(hub) == ["a"]


async def test_a_name_that_a_user_has_can_be_the_apps_too_and_hides_it_from_that_user(tmp_path: Path) -> None:
    file = write(tmp_path / "action_servers.json", [])
    async with open_hub(tmp_path, action_servers=file) as hub:
        own = await hub.connectors.add("a", **stdio(), connect=False)
        write(file, [entry("a")])
        await hub.configuration_files.sync()
        assert hub.configuration_files.problems == ()
        assert (await hub.connectors.get("a")).connector.id == own.connector.id
        theirs = await hub.acting_for(Caller(user="somebody-else")).connectors.get("a")
        assert (theirs.connector.workspace, theirs.connector.origin) == ("", "files")
        await hub.connectors.remove("a")
        assert (await hub.connectors.get("a")).connector.id == theirs.connector.id


async def test_a_dragoman_toml_is_app_configuration_too(tmp_path: Path) -> None:
    command, args = stdio()["command"], stdio()["args"]
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[connectors.tools]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n")
    async with open_hub(tmp_path, configuration=file) as hub:
        assert (await hub.call("mcp_tools_echo", {"text": "x"})).ok


async def test_assignments_are_written_back_and_nothing_else_is_changed(tmp_path: Path) -> None:
    servers = write(tmp_path / "action_servers.json", [entry("my_tools"), entry("b")])
    agents = tmp_path / "agent_configs"
    agents.mkdir()
    text = (
        '{\n    // the mailer\n    "name": "mailer",\n    "action_servers": ["b"],\n'
        '    "own_field": 1.50\n}\n'
    )
    (agents / "post.json").write_text(text)
    async with open_hub(tmp_path, action_servers=servers, agent_configs=agents) as hub:
        assert [agent.name for agent in hub.configuration_files.agents] == ["mailer"]
        agent = await hub.configuration_files.assign("mailer", "my-tools", hub.caller)
        assert agent.connectors == ("b", "my_tools")
        assert (agents / "post.json").read_text() == text.replace('["b"]', '["b", "my_tools"]')
        await hub.configuration_files.assign("mailer", "my_tools", hub.caller)
        agent = await hub.configuration_files.remove("mailer", "my-tools", hub.caller)
        assert (agents / "post.json").read_text() == text
        await hub.configuration_files.sync()
        assert hub.configuration_files.agents[0].connectors == ("b",)
        assert await hub.imports.agents.list() == []


async def test_one_server_alone_becomes_a_list_when_another_is_assigned(tmp_path: Path) -> None:
    servers = write(tmp_path / "action_servers.json", [entry("a"), entry("b")])
    agents = tmp_path / "agent_configs"
    agents.mkdir()
    (agents / "bob.json").write_text('{"agent_name": "bob", "action_server": "a"}')
    async with open_hub(tmp_path, action_servers=servers, agent_configs=agents) as hub:
        for change, left in (
            (hub.configuration_files.assign, ("a", "b")),
            (hub.configuration_files.remove, ("a",)),
        ):
            assert (await change("bob", "b", hub.caller)).connectors == left
        assert (await hub.configuration_files.remove("bob", "a", hub.caller)).connectors == ()
        await hub.configuration_files.sync()
        assert hub.configuration_files.agents[0].connectors == ()


async def test_an_agent_without_a_file_gets_one(tmp_path: Path) -> None:
    agents = tmp_path / "agent_configs"
    agents.mkdir()
    async with open_hub(tmp_path, agent_configs=agents) as hub:
        await hub.connectors.add("a", **stdio(), connect=False)
        await hub.configuration_files.assign("new one", "a", hub.caller)
        assert json.loads((agents / "new one.json").read_text()) == {
            "name": "new one",
            "action_servers": ["a"],
        }
        for name in ("../escape", "", ".hidden", "a/b"):
            with pytest.raises(InvalidConfig, match="cannot be the name"):
                await hub.configuration_files.assign(name, "a", hub.caller)
        with pytest.raises(NotFound):
            await hub.configuration_files.assign("new one", "nothing", hub.caller)
        assert [path.name for path in agents.iterdir()] == ["new one.json"]


async def test_without_a_folder_an_assignment_says_how_to_get_one(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), connect=False)
        with pytest.raises(InvalidConfig, match="no folder for agents"):
            await hub.configuration_files.assign("mailer", "a", hub.caller)


async def test_one_dead_server_delays_the_start_for_a_moment_only(tmp_path: Path) -> None:
    file = write(tmp_path / "action_servers.json", [entry("dead", "--never-initialise"), entry("alive")])
    began = monotonic()
    async with open_hub(tmp_path, action_servers=file) as hub:
        assert monotonic() - began < START_LIMIT + patient(5)
        assert (await hub.call("mcp_alive_echo", {"text": "x"})).ok
        assert (await hub.connectors.get("dead")).status.state == "connecting"
