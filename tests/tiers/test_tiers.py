"""Whose connectors they are: the app's, the workspace's, a user's. Nearest wins, nobody takes from above."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.errors import Conflict, Denied, NotFound
from dragoman.events import Event
from dragoman.hub.connector_settings import AuthSettings
from servers.account_server import AccountServer, tool
from servers.processes import stdio
from tiers.people import ADA, BOB, NORA, SAM, bring, open_team

pytestmark = pytest.mark.anyio


async def slugs(hub: Hub, caller: Caller) -> list[str]:
    return [
        view.connector.slug
        for view in await hub.acting_for(caller).connectors.list()
        if view.connector.kind == "mcp"
    ]


def app_file(path: Path, **servers: Any) -> Path:
    file = path / "action_servers.json"
    file.write_text(json.dumps([{"name": name, **facts} for name, facts in servers.items()]))
    return file


async def test_what_an_admin_adds_everybody_of_the_workspace_has_at_once(
    tmp_path: Path, database_url: str
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        await hub.acting_for(NORA).connectors.add("wiki", **stdio(), shared=True)
        for caller in (ADA, BOB, NORA):
            assert await slugs(hub, caller) == ["wiki"]
            assert (await hub.acting_for(caller).call("mcp_wiki_echo", {"text": "x"})).ok
        assert await slugs(hub, SAM) == []
        output = await hub.acting_for(SAM).call("mcp_wiki_echo", {"text": "x"})
        assert output.error is not None
        assert output.error.code == "not_found"


async def test_a_member_neither_adds_for_all_nor_changes_what_is_everybodys(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        with pytest.raises(Denied):
            await hub.acting_for(ADA).connectors.add("wiki", **stdio(), shared=True, connect=False)
        await hub.acting_for(NORA).connectors.add("wiki", **stdio(), shared=True, connect=False)
        for change in (
            hub.acting_for(ADA).connectors.update("wiki", description="mine"),
            hub.acting_for(ADA).connectors.disable("wiki"),
            hub.acting_for(ADA).connectors.remove("wiki"),
        ):
            with pytest.raises(Denied, match="whole workspace"):
                await change
        with pytest.raises(NotFound):
            await hub.acting_for(SAM).connectors.remove("wiki")
        await hub.acting_for(NORA).connectors.remove("wiki")


async def test_two_users_of_a_workspace_have_the_same_name_and_never_meet(
    tmp_path: Path, database_url: str
) -> None:
    async with open_team(tmp_path, database_url) as hub:
        for caller in (ADA, BOB, SAM):
            await hub.acting_for(caller).connectors.add("notes", **stdio())
        ids = {
            (await hub.acting_for(caller).connectors.get("notes")).connector.id for caller in (ADA, BOB, SAM)
        }
        assert len(ids) == 3
        counts = [
            (await hub.acting_for(caller).call("mcp_notes_count", {})).result
            for caller in (ADA, BOB, SAM, ADA)
        ]
        assert [count["count"] for count in counts] == [1, 1, 1, 2]
        assert len({count["pid"] for count in counts}) == 3
        await hub.acting_for(ADA).connectors.remove("notes")
        assert await slugs(hub, ADA) == []
        assert await slugs(hub, BOB) == ["notes"]


async def test_a_name_from_above_is_not_taken_and_nobody_says_whose_it_is(
    tmp_path: Path, database_url: str
) -> None:
    file = app_file(tmp_path, clock={**stdio(), "auto_discover": False})
    async with open_team(tmp_path, database_url, action_servers=file) as hub:
        await hub.acting_for(NORA).connectors.add("wiki", **stdio(), shared=True, connect=False)
        for name, caller, shared in (
            ("wiki", ADA, False),
            ("clock", ADA, False),
            ("clock", NORA, True),
            ("native", ADA, False),
        ):
            with pytest.raises(Conflict) as caught:
                await hub.acting_for(caller).connectors.add(name, **stdio(), connect=False, shared=shared)
            said = f"{caught.value.message} {caught.value.hint}"
            assert not any(word in said for word in ("workspace", "app", "nora", "north", "con_"))
        await hub.acting_for(SAM).connectors.add("wiki", **stdio(), connect=False)


async def test_of_one_name_the_nearest_is_called(tmp_path: Path, database_url: str) -> None:
    async with (
        AccountServer(lambda _: [tool("who", "of all")]) as shared,
        AccountServer(lambda _: [tool("who", "of one")]) as own,
        open_team(tmp_path, database_url) as hub,
    ):
        await hub.acting_for(ADA).connectors.add("staff", url=own.url)
        await hub.acting_for(NORA).connectors.add("staff", url=shared.url, shared=True)
        assert hub.acting_for(ADA).tools.get("mcp_staff_who").definition.description == "of one"
        assert hub.acting_for(BOB).tools.get("mcp_staff_who").definition.description == "of all"
        for caller, owner, text in ((ADA, "ada", "of one"), (BOB, "", "of all")):
            assert (await hub.acting_for(caller).connectors.get("staff")).connector.owner == owner
            assert [one.definition.description for one in hub.acting_for(caller).tools.list("staff")] == [
                text
            ]
            assert len([one for one in hub.acting_for(caller).tools.list() if one.slug == "staff"]) == 1
            assert (await hub.acting_for(caller).call("mcp_staff_who")).ok
        assert (len(own.calls), len(shared.calls)) == (1, 1)


async def test_the_apps_connectors_are_everybodys_and_their_connections_each_ones_own(
    tmp_path: Path, database_url: str
) -> None:
    file = app_file(tmp_path, tally=stdio())
    async with open_team(tmp_path, database_url, action_servers=file) as hub:
        counts = [
            (await hub.acting_for(caller).call("mcp_tally_count", {})).result
            for caller in (ADA, SAM, BOB, SAM)
        ]
        assert [count["count"] for count in counts] == [1, 1, 1, 2]
        assert len({count["pid"] for count in counts}) == 3
        with pytest.raises(Denied, match="whole installation"):
            await hub.acting_for(NORA).connectors.remove("tally")
        view = await hub.acting_for(ADA).connectors.get("tally")
        assert (view.connector.workspace, view.connector.origin) == ("", "files")


def account(token: str | None) -> list[dict[str, Any]] | None:
    shown = {"t-ada": ["inbox", "ledger"], "t-bob": ["inbox"]}
    return None if token not in shown else [tool(name) for name in shown[token]]


async def test_each_user_has_the_tools_of_their_own_account_and_no_others(
    tmp_path: Path, database_url: str
) -> None:
    async with AccountServer(account) as server, open_team(tmp_path, database_url) as hub:
        auth: AuthSettings = {"kind": "bearer"}
        await hub.acting_for(NORA).connectors.add(
            "mail", url=server.url, auth=auth, personal=("auth",), shared=True, connect=False
        )
        heard: list[Event] = []
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(_hear(hub, BOB, heard))
            await asyncio.sleep(0)  # until it listens
            await bring(hub, "mail", "t-ada", ADA)
            listening.cancel()
        assert not [event for event in heard if "ledger" in json.dumps(event.data)]
        assert [one.name for one in hub.acting_for(ADA).tools.list("mail")] == [
            "mcp_mail_inbox",
            "mcp_mail_ledger",
        ]
        await bring(hub, "mail", "t-bob", BOB)
        assert [one.name for one in hub.acting_for(BOB).tools.list("mail")] == ["mcp_mail_inbox"]
        for caller in (BOB, NORA, SAM):
            found = await hub.acting_for(caller).tools.search("ledger")
            assert [hit for hit in found.hits if "ledger" in hit.tool.name] == []
            with pytest.raises(NotFound) as caught:
                hub.acting_for(caller).tools.info("mcp_mail_ledger")
            assert "ledger" not in (caught.value.hint or "")
            output = await hub.acting_for(caller).call("mcp_mail_ledger")
            assert output.error is not None
            # Who has brought nothing yet is told so, whatever name they ask for.
            assert output.error.code == ("needs_auth" if caller is NORA else "not_found")
        assert hub.acting_for(NORA).tools.list("mail") == [], "who brings nothing sees nothing"
        for caller, token in ((ADA, "t-ada"), (BOB, "t-bob")):
            assert (await hub.acting_for(caller).call("mcp_mail_inbox")).result == f"inbox for {token}"
        assert server.calls == [("t-ada", "inbox"), ("t-bob", "inbox")]


async def _hear(hub: Hub, caller: Caller, heard: list[Event]) -> None:
    async for event in hub.acting_for(caller).events():
        heard.append(event)
