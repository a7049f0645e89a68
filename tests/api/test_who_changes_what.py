"""Who may change which setting of what, by REST: the operator, an admin, a member, its owner, a stranger.

Every setting of connectors, agents, users, keys and workspaces is walked, as its description says.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pytest
from live import Live, Reply, open_service

from dragoman.agent import AgentProfile
from dragoman.connections.boxes import machine
from dragoman.connector import Configuration
from dragoman.errors import Denied
from dragoman.hub import permissions
from dragoman.hub.permissions import CHANGEABLE, Permissions, may_change
from dragoman.people import ApiKey, User, Workspace
from dragoman.scope import LOCAL_CALLER, Caller
from dragoman.setting import Described, Setting, people_set, settings_of
from patience import until
from servers.every_setting import other_value, put
from servers.hubs import quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio
OF_THE_CONNECTOR = {"description", "aliases", "enabled"}
BASES: dict[str, dict[str, Any]] = {
    "far": {"url": "https://tools.example.com/mcp"},
    "run": {"command": sys.executable, "args": ["server.py"]},
    "api": {"openapi": "https://api.example.com/openapi.json"},
}
MIDDLE: dict[str, Any] = {
    "approval": "default",
    "pin": "warn",
    "output_check": "warn",
    "connect_timeout": 30,
    "request_timeout": 30,
    "max_request_time": 30,
    "max_servers": 5,
    "max_concurrency": 5,
    "shared_concurrency": 5,
    "calls_per_minute": 5,
    "max_result_bytes": 5000,
    "max_message_bytes": 5000,
    "max_tools": 5000,
    "max_messages_per_second": 5000,
    "max_bytes_per_second": 5000,
}
# Of every field: the base on which it can be changed, and the change.
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "kind": ("far", {"kind": "openapi", "openapi": "https://api.example.com"}),
    "transport": ("far", {"transport": "sse"}),
    "command": ("run", {"command": "/bin/sh"}),
    "args": ("run", {"args": ["other.py"]}),
    "env": ("run", {"env": {"PYTHONPATH": "/tmp"}}),
    "cwd": ("run", {"cwd": "/"}),
    "url": ("far", {"url": "https://elsewhere.example.com/mcp"}),
    "headers": ("far", {"headers": {"X-Tenant": "7"}}),
    "auth": ("far", {"auth": {"kind": "apikey"}}),
    "openapi": ("api", {"openapi": "https://api.example.com/other.json"}),
    "server": ("api", {"server": "https://elsewhere.example.com"}),
    "secrets": ("far", {"bearer": "another"}),
    "personal": ("far", {"personal": ["header:X-Key"]}),
    "select": ("api", {"select": {"methods": ["DELETE"]}}),
    "isolation": ("far", {"isolation": "thread"}),
    "deferred": ("far", {"deferred": True}),
    "retry": ("far", {"retry": {"tries": 1}}),
    "reconnect": ("far", {"reconnect": {"attempts": 1}}),
    "client_capabilities": ("far", {"client_capabilities": []}),
    "document_ttl": ("api", {"document_ttl": 9}),
    "idle_ttl": ("far", {"idle_ttl": 9}),
    "cache_ttl": ("far", {"cache_ttl": 9}),
    "health_interval": ("far", {"health_interval": 9}),
    "auto_reconnect": ("far", {"auto_reconnect": False}),
    "auto_discover": ("far", {"auto_discover": False}),
    "eager": ("far", {"eager": True}),
    "hooks": ("far", {"hooks": ["secrets"]}),
    "sandbox": ("run", {"sandbox": machine.chosen("auto")}),
    "mounts": ("run", {"mounts": ["/usr/share"]}),
    "network": ("run", {"network": "none"}),
    "limits": ("run", {"limits": {"memory": 512}}),
}
# What stays the operator's of what people gave too.
OPERATORS = ("mounts", "limits")
_MOST = (
    "max_result_bytes",
    "max_message_bytes",
    "max_tools",
    "max_messages_per_second",
    "max_bytes_per_second",
)
STRICTER: dict[str, Any] = {
    "approval": "always",
    "pin": "block",
    "output_check": "strict",
    **dict.fromkeys(("connect_timeout", "request_timeout", "max_request_time"), 20),
    **dict.fromkeys(("max_servers", "max_concurrency", "shared_concurrency", "calls_per_minute"), 4),
    **dict.fromkeys(_MOST, 4000),
}
LAXER: dict[str, Any] = {
    "approval": "never",
    "pin": "off",
    "output_check": "off",
    **dict.fromkeys(("connect_timeout", "request_timeout", "max_request_time"), 40),
    **dict.fromkeys(("max_servers", "max_concurrency", "shared_concurrency", "calls_per_minute"), 6),
    **dict.fromkeys(_MOST, 6000),
}
SCOPES = ["read", "call", "manage", "approve", "admin"]
Whose = Literal["operator", "admin", "member", "stranger", "foreign_admin"]
SMALL: Any = "a key that may little"
STRANGERS: tuple[Whose, ...] = ("stranger", "foreign_admin")


class Town:
    """A service with an operator, an admin and a member; each has given a connector of every kind.

    In another workspace there are a member and an admin, to whom all of it does not exist.
    """

    def __init__(self, live: Live, keys: dict[str, str]) -> None:
        self.live = live
        self.keys = keys

    async def change(self, who: Whose, slug: str, change: dict[str, Any]) -> int:
        return await self.ask(who, "PATCH", f"/api/connectors/{slug}", {**change, "connect": False})

    async def ask(self, who: Whose, method: str, path: str, body: Any = None) -> int:
        return (await self.reply(who, method, path, body)).status

    async def reply(self, who: Whose, method: str, path: str, body: Any = None) -> Reply:
        return await self.live.ask(method, path, body, Authorization=f"Bearer {self.keys[who]}")

    async def state_is(self, tool: str, state: str) -> bool:
        return (await self.live.ask("GET", f"/api/tools/{tool}")).value["state"] == state


@asynccontextmanager
async def open_town(home: Path) -> AsyncGenerator[Town]:
    async with open_service(home, multi_user=True) as live:
        keys = {"operator": live.token}
        abroad = (await live.ask("POST", "/api/workspaces", {"name": "abroad"})).value["id"]
        users = {"admin": "admin", "member": "member", "stranger": "member", "foreign_admin": "admin"}
        for name, role in users.items():
            place = {"workspace": abroad} if name in STRANGERS else {}
            added = await live.ask("POST", "/api/users", {"name": name, "role": role, **place})
            assert added.status == 201, added.body
            new = {"name": "k", "user": name, "scopes": SCOPES, **place}
            keys[name] = (await live.ask("POST", "/api/keys", new)).value["key"]
        town = Town(live, keys)
        for who in ("operator", "admin", "member"):
            for base, facts in BASES.items():
                if (who, base) == ("member", "run"):
                    continue
                new = {"name": f"{who}-{base}", "connect": False, **facts, **MIDDLE}
                if who != "member":
                    new["shared"] = True
                assert await town.ask(who, "POST", "/api/connectors", new) == 201, (who, base)
        yield town


class Forgetful(Configuration):
    """With fields of which nobody said who may change them."""

    region: str = "here"
    deferred: bool | None = None


FORGOTTEN = {one.name: one for one in settings_of(Forgetful)}


def test_every_field_says_who_may_change_it() -> None:
    assert {one.path[0] for one in CHANGEABLE} == set(Configuration.model_fields) | OF_THE_CONNECTOR
    assert {one.path[0] for one in CHANGEABLE if one.setting.who == "narrow"} == {
        *STRICTER,
        "description",
        "enabled",
    }
    assert CHANGES.keys() | STRICTER.keys() == set(Configuration.model_fields)


def test_what_decides_who_gets_the_secrets_is_marked() -> None:
    leading = "kind transport command args env cwd url headers auth openapi server"
    assert {one.path[0] for one in CHANGEABLE if one.setting.leads} == set(leading.split())
    assert FORGOTTEN["region"].setting.leads, "a field that says nothing may lead anywhere"


@pytest.mark.parametrize("is_own", [True, False])
def test_a_field_that_says_nothing_is_the_operators_alone(is_own: bool) -> None:
    assert not may_change(FORGOTTEN["region"], "here", "there", is_own=is_own)


async def test_of_what_the_operator_gave_people_change_nothing_but_make_it_stricter(tmp_path: Path) -> None:
    async with open_town(tmp_path) as town:
        for field, (base, change) in CHANGES.items():
            for who in ("admin", "member"):
                assert await town.change(who, f"operator-{base}", change) == 403, (who, field)
            for who in STRANGERS:
                assert await town.change(who, f"operator-{base}", change) == 404, (who, field)
        for field in STRICTER:
            assert await town.change("admin", "operator-far", {field: LAXER[field]}) == 403, field
            assert await town.change("member", "operator-far", {field: STRICTER[field]}) == 403, field
        connectors = town.live.hub.connectors
        for base in BASES:
            assert (await connectors.get(f"operator-{base}")).connector.revision == 1, "nothing was written"
        for field in STRICTER:
            assert await town.change("admin", "operator-far", {field: STRICTER[field]}) == 200, field
            assert await town.change("admin", "operator-far", {field: MIDDLE[field]}) == 403, "never back"
        assert await town.change("admin", "operator-far", {"description": "ours"}) == 200
        found = (await connectors.get("operator-far")).connector
        assert found.configuration.model_dump(include=set(STRICTER)) == STRICTER
        assert (found.origin, found.description) == ("operator", "ours")


async def test_the_operator_changes_every_field_of_what_they_gave(tmp_path: Path) -> None:
    async with open_town(tmp_path) as town:
        for field, (base, change) in CHANGES.items():
            if field == "kind":
                continue  # it becomes something else; the last of all
            assert await town.change("operator", f"operator-{base}", change) == 200, field
        for field in STRICTER:
            for values in (STRICTER, LAXER):
                assert await town.change("operator", "operator-far", {field: values[field]}) == 200, field
        assert await town.change("operator", "operator-far", {**CHANGES["kind"][1], "personal": []}) == 200


@pytest.mark.parametrize("owner", ["admin", "member"])
async def test_people_change_every_field_of_what_is_their_own(tmp_path: Path, owner: Whose) -> None:
    """An admin what is the workspace's; commands are for admins, as ever."""
    async with open_town(tmp_path) as town:
        for field, (base, change) in CHANGES.items():
            slug = f"{owner}-{base}"
            if field == "kind" or (owner, base) == ("member", "run"):
                continue
            assert await town.change(owner, slug, change) == (403 if field in OPERATORS else 200), field
            other = "admin" if owner == "member" else "member"
            assert await town.change(other, slug, change) == (404 if owner == "member" else 403), field
            assert [await town.change(who, slug, change) for who in STRANGERS] == [404, 404], field
        for field in STRICTER:
            for values in (STRICTER, LAXER):
                assert await town.change(owner, f"{owner}-far", {field: values[field]}) == 200, field
        assert await town.change(owner, f"{owner}-far", {**CHANGES["kind"][1], "personal": []}) == 200
        assert await town.change(owner, f"{owner}-api", BASES["run"]) == (403 if owner == "member" else 200)


async def test_what_the_operator_turned_off_stays_off(tmp_path: Path) -> None:
    async with open_town(tmp_path) as town:
        path = "/api/connectors/operator-far"
        assert await town.ask("member", "POST", f"{path}/disable") == 403
        assert await town.ask("admin", "POST", f"{path}/disable") == 200
        assert await town.ask("admin", "POST", f"{path}/enable") == 403
        assert await town.ask("operator", "POST", f"{path}/enable") == 200
        for switch in ("disable", "enable"):
            assert await town.ask("admin", "POST", f"/api/connectors/admin-far/{switch}") == 200


async def test_a_field_that_somebody_forgot_is_refused_on_what_is_ones_own_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_town(tmp_path) as town:
        described = [FORGOTTEN["deferred"] if one.name == "deferred" else one for one in CHANGEABLE]
        monkeypatch.setattr(permissions, "CHANGEABLE", described)
        for who in ("admin", "member"):
            assert await town.change(who, f"{who}-far", {"deferred": True}) == 403
            new = {"name": "new", "connect": False, "url": "https://x.example.com", "deferred": True}
            assert await town.ask(who, "POST", "/api/connectors", new) == 403
        assert await town.change("operator", "operator-far", {"deferred": True}) == 200


async def test_a_replacement_follows_the_same_rules(tmp_path: Path) -> None:
    """Names, switch and fields at once, as an import writes them."""
    admin = replace(LOCAL_CALLER, user="ada", role="admin")
    async with open_town(tmp_path) as town:
        connectors = town.live.hub.acting_for(admin).connectors
        same: dict[str, Any] = {**BASES["far"], **MIDDLE}
        refused: list[dict[str, Any]] = [
            {**same, "aliases": ("another",)},
            {**same, "isolation": "shared"},
            BASES["far"],
        ]
        for facts in refused:
            with pytest.raises(Denied):
                await connectors.replace("operator-far", connect=False, **facts)
        view = await connectors.replace("operator-far", enabled=False, connect=False, **same)
        assert not view.connector.enabled
        with pytest.raises(Denied):
            await connectors.replace("operator-far", connect=False, **same)


async def test_tools_of_what_the_operator_gave_can_only_be_made_stricter(tmp_path: Path) -> None:
    async with open_town(tmp_path) as town:
        for who in ("operator", "admin"):
            new = {"name": f"{who}-raw", "shared": True, **quick(), **stdio(sandbox="auto")}
            assert await town.ask(who, "POST", "/api/connectors", new) == 201
        given, ours = "/api/tools/operator-raw__send", "/api/tools/admin-raw__send"
        all_ways = ["direct", "agent", "mcp", "code"]
        laxer: list[dict[str, Any]] = [
            {"approval": "never"},
            {"approval": "default"},
            {"allowed_callers": all_ways},
            {"cost": 0.5},
            {"cache_ttl": 9},
        ]
        for settings in laxer:
            assert await town.ask("admin", "PATCH", given, settings) == 403, settings
            assert await town.ask("admin", "PATCH", ours, settings) == 200, settings
        stricter: list[dict[str, Any]] = [
            {"approval": "always"},
            {"allowed_callers": ["direct", "agent"]},
            {"required_capabilities": ["finance"]},
        ]
        for settings in stricter:
            assert await town.ask("member", "PATCH", given, settings) == 403, settings
            assert await town.ask("admin", "PATCH", given, settings) == 200, settings
        back: list[dict[str, Any]] = [
            {"approval": None},
            {"allowed_callers": all_ways},
            {"required_capabilities": []},
        ]
        for settings in back:
            assert await town.ask("admin", "PATCH", given, settings) in (403, 404), settings
        for settings in (*back, *laxer):
            assert await town.ask("operator", "PATCH", given, settings) == 200, settings
        assert await town.ask("admin", "POST", f"{given}/disable") == 200
        assert await town.ask("admin", "POST", f"{given}/enable") == 403
        assert await town.ask("operator", "POST", f"{given}/enable") == 200
        for switch in ("disable", "enable"):
            assert await town.ask("admin", "POST", f"{ours}/{switch}") == 200


async def test_what_the_operator_gave_people_neither_remove_nor_accept_changes_of(tmp_path: Path) -> None:
    async with open_town(tmp_path) as town:
        for who in ("operator", "admin"):
            new = {"name": f"{who}-raw", "shared": True, "pin": "block", "isolation": "shared"}
            new |= {**quick(), **stdio(sandbox="auto")}
            assert await town.ask(who, "POST", "/api/connectors", new) == 201
            changed = await town.live.call(f"{who}-raw__change_tool", name="echo")
            assert changed["ok"], changed
        for who in ("operator", "admin"):
            await until(lambda who=who: town.state_is(f"{who}-raw__echo", "changed"))
        accept = "/api/tools/operator-raw__echo/accept"
        assert await town.ask("member", "POST", accept) == 403
        assert await town.ask("admin", "POST", accept) == 403
        assert await town.state_is("operator-raw__echo", "changed")
        assert await town.ask("operator", "POST", accept) == 200
        assert await town.ask("admin", "POST", "/api/tools/admin-raw__echo/accept") == 200
        for who in ("member", "admin"):
            assert await town.ask(who, "DELETE", "/api/connectors/operator-raw") == 403
        assert await town.ask("member", "DELETE", "/api/connectors/admin-raw") == 403
        assert await town.ask("admin", "DELETE", "/api/connectors/admin-raw") == 204
        assert await town.ask("member", "DELETE", "/api/connectors/member-far") == 204
        assert await town.ask("operator", "DELETE", "/api/connectors/operator-raw") == 204


@dataclass(frozen=True)
class Thing:
    """Something that has settings: where REST has it, who manages it, and who is told that it is there."""

    name: str
    noun: type
    path: str
    managers: frozenset[Whose]
    seen_by: frozenset[Whose] = frozenset()


async def things_of(town: Town) -> list[Thing]:
    """An agent of each tier, a user, a key of theirs, and the workspace."""
    makers: tuple[Whose, ...] = ("member", "admin")
    for who in makers:
        new = {"name": f"of-{who}", "shared": who == "admin", "model": "offline"}
        assert await town.ask(who, "POST", "/api/agents", new) == 201
    key = (await town.reply("member", "POST", "/api/keys", {"name": "spare"})).value["id"]
    lead: frozenset[Whose] = frozenset({"operator", "admin"})
    member: frozenset[Whose] = frozenset({"member"})
    return [
        Thing("a member's own agent", AgentProfile, "/api/agents/of-member", member),
        Thing("everybody's agent", AgentProfile, "/api/agents/of-admin", lead, member),
        Thing("a user", User, "/api/users/member", lead, member),
        Thing("a user's key", ApiKey, f"/api/keys/{key}", lead | member),
        Thing("the workspace", Workspace, "/api/workspaces/local", lead, member),
    ]


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return sorted(value) if isinstance(value, tuple | frozenset) else value


@pytest.mark.slow
async def test_every_setting_of_agents_users_keys_and_workspaces_is_changed_by_whom_it_says(
    tmp_path: Path,
) -> None:
    """And set back by them, with the same right; others change nothing."""
    async with open_town(tmp_path) as town:
        walked: set[tuple[str, str]] = set()
        for thing in await things_of(town):
            for one in people_set(thing.noun):
                for who in get_args(Whose):
                    status, value = await _change(town, who, thing, one, other_value(one))
                    allowed = {"operator": {"operator"}, "admin": {"operator", "admin"}}
                    may = who in thing.managers & allowed.get(one.setting.who, thing.managers)
                    where = (thing.name, one.name, who)
                    if not may:
                        assert status == (403 if who in thing.seen_by else 404) or status == 403, where
                        assert (await _change(town, who, thing, one, None))[0] in (403, 404), where
                        continue
                    assert (status, value) == (200, _as_json(other_value(one))), where
                    status, value = await _change(town, who, thing, one, None)
                    # A worker without a list has no connector.
                    default = () if one.name == "connectors" else one.default
                    assert (status, value) == (200, _as_json(default)), where
                walked.add((thing.noun.__name__, one.name))
        nouns = (AgentProfile, User, ApiKey, Workspace)
        assert walked == {(noun.__name__, one.name) for noun in nouns for one in people_set(noun)}


async def _change(town: Town, who: Whose, thing: Thing, one: Described, value: Any) -> tuple[int, Any]:
    body: dict[str, Any] = {}
    put(body, one, _as_json(value))
    reply = await town.reply(who, "PATCH", thing.path, body)
    return reply.status, one.found_in(reply.value)


@dataclass(frozen=True)
class Unsaid(Workspace):
    """With a setting of which nobody said who may change it."""

    region: Annotated[str, Setting("Where it is.")] = "here"


def test_a_setting_of_which_nobody_said_who_may_change_it_is_the_operators() -> None:
    before = Unsaid(id="w", name="w")
    after = replace(before, region="there")
    rules = Permissions(multi_user=True, app=None)
    for role in ("member", "admin"):
        with pytest.raises(Denied, match="only the operator changes region"):
            rules.check_settings(Caller("w", "ann", role=role), before, after)
    rules.check_settings(Caller("w", "ann", role="operator"), before, after)


async def test_no_key_gives_itself_or_another_more_than_it_has(tmp_path: Path) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    late = soon + timedelta(days=30)
    async with open_town(tmp_path) as town:
        small = {"scopes": ["read", "manage"], "capabilities": ["mcp_time"], "expires_at": soon.isoformat()}
        made = (await town.reply("member", "POST", "/api/keys", {"name": "small", **small})).value
        town.keys[SMALL] = made["key"]
        other = (await town.reply("member", "POST", "/api/keys", {"name": "other", **small})).value
        wider: list[dict[str, Any]] = [
            {"scopes": ["read", "call", "manage"]},
            {"scopes": None},
            {"capabilities": ["mcp_time", "mcp_mail"]},
            {"capabilities": None},
            {"expires_at": late.isoformat()},
            {"expires_at": None},
            {"expires_in": None},
        ]
        for key in (made, other):
            path = f"/api/keys/{key['id']}"
            for change in wider:
                assert await town.ask(SMALL, "PATCH", path, change) == 403, change
                assert await town.ask("stranger", "PATCH", path, change) == 404, change
            shown = (await town.reply("member", "GET", "/api/keys")).value["keys"]
            kept = next(one for one in shown if one["id"] == key["id"])
            assert [kept[name] for name in ("scopes", "capabilities")] == [["manage", "read"], ["mcp_time"]]
        path = f"/api/keys/{other['id']}"
        for change in wider:
            for who in ("member", "admin", "operator"):
                assert await town.ask(who, "PATCH", path, change) == 200, (who, change)
                assert await town.ask(who, "PATCH", path, small) == 200, (who, change)
        for change in ({"scopes": ["read"]}, {"capabilities": ["mcp_time_now"]}, {"expires_in": 60}):
            assert await town.ask(SMALL, "PATCH", path, change) == 200, change
        assert await town.ask(SMALL, "PATCH", path, {"way": "mcp"}) == 200
        assert await town.ask(SMALL, "PATCH", path, {"scopes": ["read", "manage"]}) == 403
        assert await town.ask(SMALL, "POST", "/api/keys", {"name": "x", "scopes": ["read"]}) == 201
        shown = (await town.reply("member", "GET", "/api/keys")).value["keys"]
        assert (shown[0]["capabilities"], shown[0]["expires_at"]) == (["mcp_time"], _as_json(soon))


async def test_what_was_revoked_is_changed_by_nobody(tmp_path: Path) -> None:
    async with open_town(tmp_path) as town:
        made = (await town.reply("member", "POST", "/api/keys", {"name": "gone"})).value
        path = f"/api/keys/{made['id']}"
        assert await town.ask("member", "DELETE", path) == 200
        for who in ("member", "admin", "operator"):
            assert await town.ask(who, "PATCH", path, {"expires_in": 60}) == 409, who
