"""What files bring along, by whose hand: the environment is the operator's, agents are each one's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import Denied, InvalidArguments, InvalidConfig
from dragoman.formats.import_files import ImportText
from dragoman.people import UserLimits
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
            step = (await hub.acting_for(caller).imports.apply([text(a=entry)]))[0]
            assert (step.action, step.reason) == ("needs_input", "it asks for env:SERVER_SECRET")
        inputs = {"env:SERVER_SECRET": "mine"}
        step = (await hub.acting_for(ADA).imports.apply([text(a=entry)], inputs=inputs))[0]
        assert step.action == "add"
        connector = (await hub.acting_for(ADA).connectors.get("a")).connector
        assert connector.configuration.secrets == ("header:Authorization",)
        assert (await hub.acting_for(ADA).call("mcp_a_read")).ok
        assert "mine" in seen
        assert CANARY not in seen
        step = (await hub.acting_for(LOCAL_CALLER).imports.apply([text(a=entry)]))[0]
        assert step.action == "add"
        assert CANARY in seen

        command = {"command": "${SERVER_SECRET}/server", "args": ["${SERVER_SECRET:-none}"]}
        step = (await hub.acting_for(BOB).imports.plan([text(b=command)]))[0]
        assert step.action == "needs_input"
        assert CANARY not in repr(step)


async def test_agents_that_one_user_imports_are_no_others(tmp_path: Path, sqlite_url: str) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        for caller, model in ((ADA, "x"), (BOB, "y"), (LOCAL_CALLER, "z")):
            agent = json.dumps({"name": "mailer", "model": model, "connectors": ["a"]})
            steps = await hub.acting_for(caller).imports.apply([ImportText(name="m.json", text=agent)])
            assert [step.action for step in steps] == ["add"]
        for caller, models in ((ADA, ["x"]), (BOB, ["y"]), (LOCAL_CALLER, ["z"]), (NORA, [])):
            assert [agent.model for agent in await hub.acting_for(caller).imports.agents.list()] == models
            exported = json.loads(await hub.acting_for(caller).exports.dragoman())
            assert [agent["model"] for agent in exported["agents"].values()] == models


async def test_only_the_operator_rewrites_the_apps_agents(tmp_path: Path, sqlite_url: str) -> None:
    agents = tmp_path / "agent_configs"
    agents.mkdir()
    async with open_team(tmp_path, sqlite_url, agent_configs=agents) as hub:
        await hub.connectors.add("a", **stdio(), connect=False)
        for caller in (ADA, NORA):
            for change in (
                hub.configuration_files.assign("m", "a", caller),
                hub.configuration_files.remove("m", "a", caller),
            ):
                with pytest.raises(Denied):
                    await change
        assert [*agents.iterdir()] == []
        await hub.configuration_files.assign("m", "a", LOCAL_CALLER)
        assert [path.name for path in agents.iterdir()] == ["m.json"]


async def test_the_apps_file_limits_every_user_and_its_changes_are_taken_in(
    tmp_path: Path, sqlite_url: str
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text("[defaults.limits]\ncalls_per_hour = 10\ncost_per_day = 0.5\n")
    async with open_team(tmp_path, sqlite_url, configuration=file) as hub:
        assert hub.configuration_files.problems == ()
        for caller in (ADA, LOCAL_CALLER):
            assert (await hub.acting_for(caller).preferences.get()).in_force == UserLimits(
                calls_per_hour=10, cost_per_day=0.5
            )
        with pytest.raises(InvalidArguments, match="at most 10"):
            await hub.acting_for(ADA).preferences.update(limits={"calls_per_hour": 11})
        file.write_text("[defaults.bounds]\ncalls_per_hour = 12\n")
        await hub.configuration_files.sync()
        assert (await hub.acting_for(ADA).preferences.get()).in_force == UserLimits(calls_per_hour=12)
        for broken in ("[defaults.limits]\ncalls_per_hour = 'many'\n", "[[[", ""):
            file.write_text(broken)
            await hub.configuration_files.sync()
            assert (await hub.acting_for(ADA).preferences.get()).in_force == UserLimits(calls_per_hour=12), (
                "as before"
            )


@pytest.mark.parametrize("text", ["limits.calls_per_our = 1", "limits.calls_per_hour = -1", "colour = 1"])
async def test_wrong_defaults_are_a_clear_error_at_start(tmp_path: Path, sqlite_url: str, text: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[defaults]\n{text}\n")
    with pytest.raises(InvalidConfig, match=r"dragoman\.toml"):
        async with open_team(tmp_path, sqlite_url, configuration=file):
            pass
