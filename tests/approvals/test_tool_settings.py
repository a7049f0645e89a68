"""What people decide about a tool holds: for everybody, over refreshes, versions and restarts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from asking import ADMIN, AGENT, ANNA, READS, SUM, WRITES, code, open_asking

from dragoman import Annotations, Caller, Hub, Settings
from dragoman.api import Api
from dragoman.catalog import Catalog
from dragoman.cli.in_process import exchange
from dragoman.connections.source import Listing
from dragoman.connector import Configuration, Connector
from dragoman.errors import Denied, InvalidArguments, NotFound
from dragoman.events import Events
from dragoman.scope import identity_of
from dragoman.store import open_store
from dragoman.tool import Tool, ToolDefinition
from servers.hubs import until
from servers.processes import stdio

pytestmark = pytest.mark.anyio
GIVEN: dict[str, Any] = {
    "allowed_callers": ["direct", "code_execution_20250825"],
    "approval": "always",
    "required_capabilities": ["finance"],
    "cost": 0.25,
    "cache_ttl": 30,
}


def settings_of(tool: Tool) -> tuple[Any, ...]:
    return (tool.allowed_callers, tool.approval, tool.required_capabilities, tool.cost, tool.cache_ttl)


CHOSEN = (frozenset({"direct", "code"}), "always", frozenset({"finance"}), 0.25, 30.0)


async def test_settings_outlive_refresh_new_version_and_restart(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url) as hub:
        assert settings_of(await hub.tools.configure(WRITES, **GIVEN)) == CHOSEN
        await hub.connectors.refresh("raw")
        assert settings_of(hub.tools.get(WRITES)) == CHOSEN
        await hub.call("mcp_raw_change_tool", {"name": "add"})
        await until(lambda: hub.tools.get(WRITES).version == 2)
        assert settings_of(hub.tools.get(WRITES)) == CHOSEN
        [entry] = await hub.audit.list(action="tool.changed")
        assert (entry.subject, entry.details["approval"]) == (WRITES, "always")
        assert entry.details["allowed_callers"] == ["code", "direct"]
    async with open_asking(tmp_path, database_url) as hub:
        assert settings_of(hub.tools.get(WRITES)) == CHOSEN
        after = await hub.tools.configure(WRITES, approval=None, cost=0)
        assert (after.approval, after.cost, after.cache_ttl) == (None, 0, 30), "what is left out stays"


async def test_a_tool_that_goes_and_returns_keeps_what_was_decided(tmp_path: Path, sqlite_url: str) -> None:
    names = tmp_path / "names.json"
    names.write_text(json.dumps(["extra"]))
    async with Hub(Settings(home=tmp_path, database_url=sqlite_url)) as hub:
        await hub.connectors.add("raw", **stdio("--tools-file", str(names)))
        await hub.tools.configure("mcp_raw_extra", approval="always")
        await hub.tools.disable("mcp_raw_extra")
        await hub.call("mcp_raw_remove_tool", {"name": "extra"})
        await until(lambda: "mcp_raw_extra" not in {tool.name for tool in hub.tools.list("raw")})
        await hub.call("mcp_raw_add_tool", {"name": "extra"})
        await until(lambda: "mcp_raw_extra" in {tool.name for tool in hub.tools.list("raw")})
        tool = hub.tools.get("mcp_raw_extra")
        assert (tool.approval, tool.enabled) == ("always", False)


async def test_native_tools_keep_their_settings_while_others_are_added(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path, approval_wait=0.01)) as hub:

        @hub.tool(annotations=Annotations(read_only=True))
        def first() -> int:
            return 1

        await hub.tools.configure("first", approval="always", allowed_callers=["agent"])

        @hub.tool
        def second() -> int:
            return 2

        tool = hub.tools.get("first")
        assert (tool.approval, tool.allowed_callers) == ("always", frozenset({"agent"}))
        assert code(await hub.acting_for(AGENT).call("first")) == "approval_pending"
        assert code(await hub.call("first")) == "denied"


async def test_lists_of_each_user_share_what_an_admin_decided(database_url: str) -> None:
    configuration = Configuration(url="http://127.0.0.1:9/mcp", personal=("auth",))
    shared = Connector(id="c", workspace="w", owner="", slug="mail", configuration=configuration)
    callers = [Caller(workspace="w", user=user) for user in ("anna", "bert", "carl")]
    listing = Listing(tools=(ToolDefinition(original_name="send"),))
    async with open_store(database_url) as store:
        await store.connectors.add(shared, [])
        catalog = await Catalog.load(store, Events())
        for caller in callers[:2]:
            await catalog.refresh(shared, listing, identity_of(caller, "user"))
        await catalog.configure("mcp_mail_send", callers[0], approval="always")
        await catalog.refresh(shared, listing, identity_of(callers[2], "user"))
        again = await Catalog.load(store, Events())
        for known in (catalog, again):
            assert [known.get("mcp_mail_send", one).approval for one in callers] == ["always"] * 3


async def test_required_capabilities_and_callers_are_in_force(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url) as hub:
        await hub.tools.configure(READS, required_capabilities=["finance"])
        without = ANNA.narrowed(["mcp_integration"])
        assert code(await hub.acting_for(without).call(READS, {"text": "x"})) == "not_found"
        assert READS not in {tool.name for tool in hub.acting_for(without).tools.list()}
        having = ANNA.narrowed(["mcp_integration", "finance"])
        assert (await hub.acting_for(having).call(READS, {"text": "x"})).ok
        await hub.tools.configure(WRITES, allowed_callers=["agent"])
        assert code(await hub.call(WRITES, SUM)) == "denied"


BAD: list[dict[str, Any]] = [
    {},
    {"allowed_callers": ["directly"]},
    {"allowed_callers": [1]},
    {"approval": "sometimes"},
    {"cost": -1},
    {"cost": float("nan")},
    {"cost": True},
    {"cache_ttl": 1e9},
    {"required_capabilities": [""]},
    {"required_capabilities": ["two words"]},
    {"required_capabilities": ["*"]},
]


async def test_what_makes_no_sense_is_refused_and_changes_nothing(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url) as hub:
        before = hub.tools.get(WRITES)
        for settings in BAD:
            with pytest.raises(InvalidArguments):
                await hub.tools.configure(WRITES, **settings)
        assert hub.tools.get(WRITES) == before


async def test_members_do_not_set_what_belongs_to_all(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url) as hub:
        with pytest.raises(Denied):
            await hub.acting_for(ANNA).tools.configure(WRITES, approval="never")
        with pytest.raises(NotFound):
            await hub.acting_for(ANNA.narrowed(["mcp_mail"])).tools.configure(WRITES, approval="never")
        assert (await hub.acting_for(ADMIN).tools.configure(WRITES, approval="never")).approval == "never"
        await hub.acting_for(ANNA).connectors.add("own", **stdio())
        changed = await hub.acting_for(ANNA).tools.configure("mcp_own_add", approval="never")
        assert changed.approval == "never"


async def test_the_rest_door_sets_and_shows_them(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url) as hub:
        api = Api(hub)
        path = f"/api/tools/{WRITES}"
        answer = await exchange(api, "PATCH", path, GIVEN, {})
        assert answer.status == 200, answer.body
        shown = (await exchange(api, "GET", path, None, {})).value
        assert {name: shown[name] for name in GIVEN} == {**GIVEN, "allowed_callers": ["code", "direct"]}
        assert (await exchange(api, "PATCH", path, {"approval": None}, {})).value["approval"] is None
        for body, status in (({}, 422), ({"approval": "x"}, 422), ({"enabled": True}, 422)):
            assert (await exchange(api, "PATCH", path, body, {})).status == status
        missing = await exchange(api, "PATCH", "/api/tools/nothing", {"cost": 1}, {})
        assert (missing.status, missing.value["code"]) == (404, "not_found")


async def test_the_rest_door_lists_and_answers(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url) as hub, asyncio.TaskGroup() as tasks:
        api = Api(hub)
        request = {"tool": WRITES, "arguments": SUM, "agent": "mailer"}
        call = tasks.create_task(exchange(api, "POST", "/api/call", request, {}))

        async def is_asked() -> bool:
            return bool((await exchange(api, "GET", "/api/approvals", None, {})).value["approvals"])

        await until(is_asked)
        [asked] = (await exchange(api, "GET", "/api/approvals", None, {})).value["approvals"]
        assert (asked["arguments"], asked["agent"], asked["answers"]) == (
            SUM,
            "mailer",
            ["once", "always", "no"],
        )
        one = f"/api/approvals/{asked['id']}"
        assert (await exchange(api, "GET", one, None, {})).value == asked
        assert (await exchange(api, "POST", f"{one}/answer", {"answer": "maybe"}, {})).status == 422
        assert (await exchange(api, "POST", f"{one}/answer", {"answer": "thread"}, {})).status == 422
        answered = await exchange(api, "POST", f"{one}/answer", {"answer": "always"}, {})
        assert (answered.status, answered.value["answer"]) == (200, "always")
        assert (await call).value["result"] == {"sum": 3}
        assert (await exchange(api, "POST", f"{one}/answer", {"answer": "no"}, {})).status == 409
        [allowed] = (await exchange(api, "GET", "/api/approvals/allowed", None, {})).value["allowed"]
        assert (allowed["approval"], allowed["thread"]) == (asked["id"], None)
        gone = f"/api/approvals/allowed/{asked['id']}"
        assert (await exchange(api, "DELETE", gone, None, {})).status == 204
        assert (await exchange(api, "DELETE", gone, None, {})).status == 404
        assert (await exchange(api, "GET", "/api/approvals/apr_nothing", None, {})).status == 404
        assert (
            len((await exchange(api, "GET", "/api/approvals", None, {"status": "all"})).value["approvals"])
            == 1
        )
        assert (await exchange(api, "GET", "/api/approvals", None, {"status": "x"})).status == 422
