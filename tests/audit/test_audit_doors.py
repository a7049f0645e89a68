"""The trail by REST and by the command, one-person mode: the local owner sees everything."""

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from trail import ADA, echo, tamper

from api.live import open_service
from cli.command_line import Command
from dragoman import Hub, NotFound, Settings
from servers.samples import sample

pytestmark = pytest.mark.anyio


async def test_rest_lists_verifies_and_exports(tmp_path: Path, database_url: str) -> None:
    async with open_service(tmp_path, database_url=database_url) as live:
        live.hub.add_tool(echo)
        for number in range(3):
            assert (await live.call("echo", text=f"secret {number}"))["ok"]
        reply = await live.ask("GET", "/api/audit?limit=2&action=call")
        assert [entry["number"] for entry in reply.value["entries"]] == [3, 2]
        assert reply.value["entries"][0]["subject"] == "echo"
        reply = await live.ask("GET", "/api/audit?after=2")
        assert [entry["number"] for entry in reply.value["entries"]] == [1]
        reply = await live.ask("GET", "/api/audit?sort=oldest&after=1")
        assert [entry["number"] for entry in reply.value["entries"]] == [2, 3]
        for words, count in (("ECH", 3), ("Call", 3), ("e%o", 0), ("nothing", 0)):
            reply = await live.ask("GET", f"/api/audit?q={quote(words)}")
            assert len(reply.value["entries"]) == count
        verdict = (await live.ask("GET", "/api/audit/verify")).value
        assert (verdict["is_whole"], verdict["count"], verdict["problem"]) == (True, 3, None)
        reply = await live.ask("GET", "/api/audit/export?after=1")
        assert [json.loads(line)["number"] for line in reply.body.splitlines()] == [2, 3]
        assert b"secret" not in reply.body
        assert (await live.ask("GET", "/api/audit/export?after=3")).body == b""
        # A tool is kept by its name for programs, told as people read it, and found by either.
        await live.hub.connectors.add("email", **sample("email", tmp_path))
        assert (await live.call("mcp_email_read-emails"))["ok"]
        for words in ("email.read-e", "mcp_email_read-emails"):
            reply = await live.ask("GET", f"/api/audit?action=call&q={words}")
            (entry,) = reply.value["entries"]
            assert reply.value["names"][entry["subject"]] == "email.read-emails"
            assert entry["subject"] == "mcp_email_read-emails"
        for wrong in ("limit=0", "limit=1001", "after=-1", "after=9999999999999", "limit=x", "sort=x"):
            assert (await live.ask("GET", f"/api/audit?{wrong}")).status == 422
        assert (await live.ask("GET", "/api/audit?workspace=nowhere")).status == 404


async def fill(home: Path) -> None:
    async with Hub(Settings(home=home)) as hub:
        hub.add_tool(echo)
        for _ in range(1203):
            await hub.call("echo", {"text": "x"})
        await hub.acting_for(ADA).call("echo", {"text": "x"})


def test_the_command_says_which_entry_was_changed_and_ends_with_1(dragoman: Command, home: Path) -> None:
    asyncio.run(fill(home))
    listed = dragoman("audit", "list", "--limit", "2", "--json")
    assert [entry["number"] for entry in listed.value["entries"]] == [1203, 1202]
    assert "echo" in dragoman("audit", "list").out
    exported = dragoman("audit", "export").out.splitlines()
    assert [json.loads(line)["number"] for line in exported] == list(range(1, 1204))
    verified = dragoman("audit", "verify")
    assert (verified.code, "1,203 entries" in verified.out) == (0, True)
    tamper(
        f"sqlite:///{home}/dragoman.db",
        "UPDATE audit SET subject = 'other' WHERE number = 777 AND workspace = 'local'",
    )
    verified = dragoman("audit", "verify")
    assert verified.code == 1
    assert "entry 777 was changed" in verified.err
    verified = dragoman("audit", "verify", "--json")
    assert (verified.code, verified.value["number"]) == (1, 776)


async def test_an_admin_names_the_own_workspace_and_no_other(tmp_path: Path, database_url: str) -> None:
    settings = Settings(home=tmp_path, database_url=database_url, multi_user=True)
    async with Hub(settings) as hub:
        acme = await hub.people.add_workspace("acme")
        await hub.people.add_workspace("other")
        await hub.people.add_user("ann", workspace="acme", role="admin")
        ann = await hub.as_user("ann", workspace="acme")
        by_name = await ann.audit.list(workspace="acme")
        assert [entry.action for entry in by_name][:1] == ["user.added"]
        assert by_name == await ann.audit.list(workspace=acme.id) == await hub.audit.list(workspace="acme")
        assert (await ann.audit.verify(workspace="acme")).is_whole
        # Whatever has a name is told by it, but for what chats of others are about.
        await hub.people.add_user("bob", workspace="acme")
        bob = await hub.as_user("bob", workspace="acme")
        thread = (await bob.threads.create("Trip to Rome")).thread.id
        key, _ = await ann.people.add_key("laptop", user="bob")
        await hub.people.update_workspace("acme", approval="always")
        shown = await ann.audit.names(await ann.audit.list())
        assert {bob.caller.user: "bob", key.id: "laptop", acme.id: "acme"}.items() <= shown.items()
        assert thread not in shown
        assert (await bob.audit.names(await bob.audit.list()))[thread] == "Trip to Rome"
        await hub.people.remove_user("bob", workspace="acme")
        assert (await ann.audit.names(await ann.audit.list(action="user.removed")))[bob.caller.user] == "bob"
        assert await ann.audit.names(await hub.audit.list(workspace="local")) == {}
        with pytest.raises(NotFound, match="there is no workspace 'other'"):
            await ann.audit.list(workspace="other")
