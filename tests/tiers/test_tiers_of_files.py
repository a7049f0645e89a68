"""What files bring along, by whose hand: the environment is the operator's, agents are each one's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import Denied, InvalidArguments, InvalidConfig
from dragoman.formats.import_files import ImportText
from dragoman.people import Bounds
from dragoman.scope import LOCAL_CALLER
from servers.account_server import AccountServer, tool
from servers.processes import stdio
from tiers.people import ADA, BOB, NORA, open_team

pytestmark = pytest.mark.anyio
CANARY = "canary-of-the-server-6c1f"


def text(**servers: Any) -> ImportText:
    return ImportText(name="mcp.json", text=json.dumps({"mcpServers": servers}))


async def test_a_variable_of_the_server_is_a_question_to_everybody_but_the_operator(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SECRET", CANARY)
    seen: list[str | None] = []

    def tools(token: str | None) -> list[dict[str, Any]]:
        seen.append(token)
        return [tool("read")]

    async with AccountServer(tools) as server, open_team(tmp_path, sqlite_url) as hub:
        entry = {"url": server.url, "headers": {"Authorization": "Bearer ${SERVER_SECRET}"}}
        for caller in (ADA, NORA):
            step = (await hub.imports.apply([text(a=entry)], caller=caller))[0]
            assert (step.action, step.reason) == ("needs_input", "it asks for env:SERVER_SECRET")
        inputs = {"env:SERVER_SECRET": "mine"}
        step = (await hub.imports.apply([text(a=entry)], inputs=inputs, caller=ADA))[0]
        assert step.action == "add"
        connector = (await hub.connectors.get("a", ADA)).connector
        assert connector.configuration.secrets == ("header:Authorization",)
        assert (await hub.call("mcp_a_read", caller=ADA)).ok
        assert "mine" in seen
        assert CANARY not in seen
        step = (await hub.imports.apply([text(a=entry)], caller=LOCAL_CALLER))[0]
        assert step.action == "add"
        assert CANARY in seen

        command = {"command": "${SERVER_SECRET}/server", "args": ["${SERVER_SECRET:-none}"]}
        step = (await hub.imports.plan([text(b=command)], caller=BOB))[0]
        assert step.action == "needs_input"
        assert CANARY not in repr(step)


async def test_agents_that_one_user_imports_are_no_others(tmp_path: Path, sqlite_url: str) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        for caller, model in ((ADA, "x"), (BOB, "y"), (LOCAL_CALLER, "z")):
            agent = json.dumps({"name": "mailer", "model": model, "connectors": ["a"]})
            steps = await hub.imports.apply([ImportText(name="m.json", text=agent)], caller=caller)
            assert [step.action for step in steps] == ["add"]
        for caller, models in ((ADA, ["x"]), (BOB, ["y"]), (LOCAL_CALLER, ["z"]), (NORA, [])):
            assert [agent.model for agent in await hub.imports.agents.list(caller)] == models
            exported = json.loads(await hub.exports.dragoman(caller=caller))
            assert [agent["model"] for agent in exported["agents"].values()] == models


async def test_only_the_operator_rewrites_the_apps_agents(tmp_path: Path, sqlite_url: str) -> None:
    agents = tmp_path / "agent_configs"
    agents.mkdir()
    async with open_team(tmp_path, sqlite_url, agent_configs=agents) as hub:
        await hub.connectors.add("a", **stdio(), connect=False)
        for caller in (ADA, NORA):
            for change in (hub.folders.assign("m", "a", caller), hub.folders.remove("m", "a", caller)):
                with pytest.raises(Denied):
                    await change
        assert [*agents.iterdir()] == []
        await hub.folders.assign("m", "a", LOCAL_CALLER)
        assert [path.name for path in agents.iterdir()] == ["m.json"]


async def test_the_apps_file_bounds_every_user_and_its_changes_are_taken_in(
    tmp_path: Path, sqlite_url: str
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text("[defaults.bounds]\ncalls_per_hour = 10\ncost_per_day = 0.5\n")
    async with open_team(tmp_path, sqlite_url, configuration=file) as hub:
        assert hub.folders.problems == ()
        for caller in (ADA, LOCAL_CALLER):
            assert (await hub.preferences.get(caller)).in_force == Bounds(calls_per_hour=10, cost_per_day=0.5)
        with pytest.raises(InvalidArguments, match="at most 10"):
            await hub.preferences.update(bounds={"calls_per_hour": 11}, caller=ADA)
        file.write_text("[defaults.bounds]\ncalls_per_hour = 12\n")
        await hub.folders.sync()
        assert (await hub.preferences.get(ADA)).in_force == Bounds(calls_per_hour=12)
        for broken in ("[defaults.bounds]\ncalls_per_hour = 'many'\n", "[[[", ""):
            file.write_text(broken)
            await hub.folders.sync()
            assert (await hub.preferences.get(ADA)).in_force == Bounds(calls_per_hour=12), "as before"


@pytest.mark.parametrize("text", ["bounds.calls_per_our = 1", "bounds.calls_per_hour = -1", "colour = 1"])
async def test_wrong_defaults_are_a_clear_error_at_start(tmp_path: Path, sqlite_url: str, text: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[defaults]\n{text}\n")
    with pytest.raises(InvalidConfig, match=r"dragoman\.toml"):
        async with open_team(tmp_path, sqlite_url, configuration=file):
            pass
