"""What a person does with a hub, from the first connector to the next start, on both databases."""

import asyncio
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Annotations, Caller, Hub, Settings
from dragoman.errors import Conflict, InvalidConfig, InvalidName, KeyFault, NotFound
from dragoman.events import Event
from dragoman.scope import LOCAL_USER
from dragoman.store import open_store
from patience import deadline, patient
from servers.toolbox import digest

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).parents[1] / "servers" / "stdio_server.py"
CANARY = "canary-7f3a9c51"


def server(*words: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVER), *words], "request_timeout": patient(10)}


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url)


async def test_a_connector_is_added_called_and_there_after_a_restart(settings: Settings) -> None:
    async with Hub(settings) as hub:
        view = await hub.connectors.add("test", **server())
        assert (view.status.state, view.catalog) == ("connected", "ready")
        assert (await hub.call("mcp_test_echo", {"text": "hi"})).result == "hi"
        known = {tool.name for tool in hub.tools.list("test")}
    async with Hub(settings) as hub:
        view = await hub.connectors.get("test")
        assert (view.status.state, view.catalog) == ("disconnected", "ready"), "connections are lazy"
        assert {tool.name for tool in hub.tools.list("test")} == known
        assert view.metrics.calls == 1
        assert (await hub.call("test__echo", {"text": "again"})).result == "again"
        assert (await hub.connectors.get("test")).metrics.calls == 2


async def test_a_given_store_is_used_and_left_open(tmp_path: Path, database_url: str) -> None:
    settings = Settings(home=tmp_path / "home")
    async with open_store(database_url) as store:
        async with Hub(settings, store=store) as hub:
            added = (await hub.connectors.add("test", **server())).connector
        assert [connector.id for connector in await store.connectors.list()] == [added.id]
        async with Hub(settings, store=store) as hub:
            assert (await hub.call("test__echo", {"text": "again"})).result == "again"
    assert not [*settings.home.glob("*.db")], "the database that the settings name is never made"


async def test_names_with_underscores_become_slugs_and_stay_aliases(settings: Settings) -> None:
    async with Hub(settings) as hub:
        view = await hub.connectors.add("email_mcp", **server())
        assert view.connector.slug == "email-mcp"
        assert (await hub.connectors.get("email_mcp")).connector.id == view.connector.id
        assert (await hub.call("email_mcp__echo", {"text": "x"})).ok
        assert (await hub.call("email-mcp.echo", {"text": "as it is read"})).result == "as it is read"
        wrong = (await hub.call("email-mcp.ecko", {"text": "x"})).error
        assert wrong is not None
        assert "mcp_email-mcp_echo" in (wrong.hint or "")
        other = hub.acting_for(replace(hub.caller, grants=(frozenset({"connector:none"}),)))
        assert not (await other.call("email-mcp.echo", {"text": "x"})).ok
        with pytest.raises(Conflict):
            await hub.connectors.add("email-mcp", **server())


@pytest.mark.parametrize("name", ["", "Time", "1time", "time!", "a" * 41, "tïme", "_", "-a"])
async def test_a_bad_name_is_refused_with_one_that_would_do(tmp_path: Path, name: str) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        with pytest.raises(InvalidName) as caught:
            await hub.connectors.add(name, **server())
        assert "would do" in (caught.value.hint or "")
        assert [view for view in await hub.connectors.list() if view.connector.kind == "mcp"] == []


async def test_secrets_reach_the_server_and_nothing_else(settings: Settings, tmp_path: Path) -> None:
    async with Hub(settings) as hub:
        view = await hub.connectors.add(
            "test",
            **server(),
            env={"API_TOKEN": CANARY, "PLAIN": "seen", "MARKED": f"{CANARY}-2"},
            secret=["env:MARKED"],
        )
        assert view.connector.configuration.env == {"PLAIN": "seen"}
        assert view.connector.configuration.secrets == ("env:API_TOKEN", "env:MARKED")
        assert CANARY not in repr(view)
        await hub.call("mcp_test_stderr", {"text": f"my token is {CANARY}"})
        found = await hub.call("mcp_test_environment", {})
        assert found.result["digests"]["API_TOKEN"] == digest(CANARY), "the server itself must have it"
        assert CANARY not in str(found), "and what it says of it is not shown"
        shown = await hub.connectors.get("test")
        assert any("my token is" in line for line in shown.status.stderr)
        assert CANARY not in repr(shown), "what a server prints of its secrets is not shown"
    for file in settings.home.rglob("*"):
        if file.is_file():
            assert CANARY.encode() not in file.read_bytes(), file


async def test_an_update_keeps_what_it_does_not_name(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server(), env={"API_TOKEN": CANARY, "PLAIN": "1", "GONE": "x"})
        view = await hub.connectors.update("test", env={"PLAIN": "2", "GONE": None}, description="A test")
        assert view.connector.configuration.env == {"PLAIN": "2"}
        assert view.connector.revision == 2
        found = (await hub.call("mcp_test_environment", {})).result["digests"]
        assert (found["API_TOKEN"], found["PLAIN"]) == (digest(CANARY), digest("2"))
        assert "GONE" not in found
        await hub.connectors.update("test", env={"API_TOKEN": "other-token-1"})
        found = (await hub.call("mcp_test_environment", {})).result["digests"]
        assert found["API_TOKEN"] == digest("other-token-1")


async def test_a_command_can_become_a_url_and_leaves_its_secrets_behind(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        await hub.connectors.add("test", **server(), env={"API_TOKEN": CANARY})
        view = await hub.connectors.update(
            "test", url="http://127.0.0.1:9/mcp", bearer="tok-123456", connect=False
        )
        assert view.connector.configuration.command is None
        assert view.connector.configuration.secrets == ("auth",)


async def test_a_bad_update_changes_nothing(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server())
        with pytest.raises(InvalidConfig):
            await hub.connectors.update("test", request_timeout=-1)
        with pytest.raises(InvalidConfig, match="no program"):
            await hub.connectors.update("test", command="no-such-program-at-all")
        assert (await hub.connectors.get("test")).connector.revision == 1
        assert (await hub.call("mcp_test_echo", {"text": "x"})).ok


async def test_a_removed_connector_is_gone_with_its_tools(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server())
        await hub.connectors.remove("test")
        assert (await hub.call("mcp_test_echo", {"text": "x"})).error.code == "not_found"  # pyright: ignore[reportOptionalMemberAccess]
        with pytest.raises(NotFound):
            await hub.connectors.get("test")
        assert (await hub.connectors.add("test", **server())).status.state == "connected"
    async with Hub(settings) as hub:
        assert (await hub.connectors.get("test")).catalog == "ready"


async def test_a_tool_can_be_turned_off_and_on(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server())
        await hub.tools.disable("mcp_test_echo")
        output = await hub.call("mcp_test_echo", {"text": "x"})
        assert output.error
        assert output.error.code == "tool_disabled"
        await hub.tools.enable("mcp_test_echo")
        assert (await hub.call("mcp_test_echo", {"text": "x"})).ok


async def test_a_pinned_connector_refuses_a_changed_tool_until_it_is_accepted(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server(), pin="block")
        await hub.call("mcp_test_add_tool", {"name": "extra"})
        await hub.connectors.refresh("test")
        await hub.tools.accept("mcp_test_extra")
        assert (await hub.call("mcp_test_extra", {})).ok
        await hub.call("mcp_test_change_tool", {"name": "extra"})
        await hub.connectors.refresh("test")
        refused = await hub.call("mcp_test_extra", {})
        assert refused.error
        assert refused.error.code == "tool_changed"
        versions = await hub.tools.versions("mcp_test_extra")
        assert versions[-1].version == 2
        assert versions[-1].diff.startswith(("-", "+", "@", " "))
        await hub.tools.accept("mcp_test_extra")
        assert (await hub.call("mcp_test_extra", {})).ok


async def test_events_tell_the_whole_life_of_a_connector(settings: Settings) -> None:
    async with Hub(settings) as hub:
        seen: list[Event] = []
        listening = asyncio.Event()

        async def follow() -> None:
            stream = hub.events()
            first = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            listening.set()
            seen.append(await first)
            async for event in stream:
                seen.append(event)
                if event.kind == "connector.removed":
                    return

        async with deadline(20), asyncio.TaskGroup() as tasks:
            tasks.create_task(follow())
            await listening.wait()
            await hub.connectors.add("test", **server())
            await hub.call("mcp_test_echo", {"text": "x"})
            await hub.connectors.remove("test")
        kinds = [event.kind for event in seen]
        assert kinds[0] == "connector.registered"
        states = [event.data["state"] for event in seen if event.kind == "connector.state"]
        assert states[:2] == ["connecting", "connected"]
        for kind in ("tools.changed", "call.started", "call.finished"):
            assert kind in kinds


async def test_functions_are_tools_before_and_after_the_hub_opens(settings: Settings) -> None:
    hub = Hub(settings)

    @hub.tool
    def double(number: int) -> int:
        """Doubles a number."""
        return number * 2

    async with hub:

        @hub.tool(name="who", annotations=Annotations(read_only=True))
        async def ask(caller: Caller) -> str:
            return caller.user

        assert double(2) == 4, "the function itself is unchanged"
        assert (await hub.call("double", {"number": 21})).result == 42
        assert (await hub.call("who", {})).result == LOCAL_USER
        assert not hub.tools.is_mcp("double")
        with pytest.raises(Conflict):
            hub.add_tool(double)


async def test_shipped_tools_are_off_until_they_are_named(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "note.txt").write_text("hello")
    async with Hub(Settings(home=tmp_path / "a")) as hub:
        assert (await hub.call("read_file", {"path": "note.txt"})).error.code == "not_found"  # pyright: ignore[reportOptionalMemberAccess]
    settings = Settings(home=tmp_path / "b", native_tools=("read_file",), tools_root=root)
    async with Hub(settings) as hub:
        output = await hub.call("read_file", {"path": "note.txt"})
        assert output.ok, output.error
        assert "hello" in str(output.result)
    with pytest.raises(InvalidConfig, match="no native tool"):
        async with Hub(Settings(home=tmp_path / "c", native_tools=("rm",), tools_root=root)):
            pass


async def test_a_database_sealed_with_another_key_is_refused_at_start(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server(), env={"API_TOKEN": CANARY}, connect=False)
    settings.key_file.write_bytes(b"x" * 32)
    with pytest.raises(KeyFault, match="another master key"):
        async with Hub(settings):
            pass
    with closing(sqlite3.connect(tmp_path / "dragoman.db")) as database:
        assert database.execute("select count(*) from secrets").fetchone() == (1,)


async def test_large_results_are_cut_and_kept_whole(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server(), max_result_bytes=2048)
        output = await hub.call("mcp_test_big", {"bytes": 100_000})
        assert output.ok
        assert output.metadata.truncated
        assert output.metadata.handle
        kept = await hub.result(output.metadata.handle)
        assert len(kept.body) >= 100_000
        with pytest.raises(NotFound):
            await hub.acting_for(Caller(user="somebody-else")).result(output.metadata.handle)


@pytest.mark.parametrize("stranger", [Caller(user="somebody-else"), Caller(workspace="elsewhere")])
async def test_what_is_anothers_does_not_exist(settings: Settings, stranger: Caller) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **server())
        seen = [view.connector.kind for view in await hub.acting_for(stranger).connectors.list()]
        assert "mcp" not in seen
        theirs = hub.acting_for(stranger)
        for act in (
            theirs.connectors.get,
            theirs.connectors.remove,
            theirs.connectors.disable,
            theirs.connectors.connect,
        ):
            with pytest.raises(NotFound):
                await act("test")
        output = await theirs.call("mcp_test_echo", {"text": "x"})
        assert output.error
        assert output.error.code == "not_found"
        assert (await hub.call("mcp_test_echo", {"text": "x"})).ok
