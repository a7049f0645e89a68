"""Every setting of every noun can be set by every door and set back; it is the operator's unless it says."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest

from dragoman.agent import Agent, AgentProfile
from dragoman.connector import Configuration
from dragoman.errors import InvalidArguments, InvalidConfig
from dragoman.people import ApiKey, User, Workspace
from dragoman.setting import Described, Setting, people_set, read_moment, settings_of
from dragoman.store import tables
from dragoman.store.noun_rows import noun_of, row_of
from servers.every_setting import (
    BARE,
    assert_all_are_set,
    assert_none_is_set,
    every_fact,
    other_value,
    put,
    settings_for,
)
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio
WAYS = [*BARE]


def test_every_field_of_a_configuration_is_described() -> None:
    for one in settings_of(Configuration):
        assert one.setting.meaning.endswith("."), one.name
        assert one.setting.group != "More", one.name


def test_every_setting_belongs_to_some_way() -> None:
    walked = {one.name for way in WAYS for one in settings_for(way)} | {"kind", "command", "url", "openapi"}
    assert walked == {one.name for one in settings_of(Configuration) if not one.setting.derived}


def test_no_two_settings_share_a_flag_or_a_field_of_the_form() -> None:
    flags = [flag for one in settings_of(Configuration) for flag in one.flags if flag != "--"]
    assert len(flags) == len({*flags})
    keys = [one.key for one in settings_of(Configuration)]
    assert len(keys) == len({*keys})


def test_a_field_that_says_nothing_is_the_operators() -> None:
    assert Setting("What it means.").who == "operator"

    class Unsaid(Configuration):
        region: str | None = None
        zone: Annotated[str | None, Setting("Where.")] = None

    said = {one.name: one.setting.who for one in settings_of(Unsaid)}
    assert (said["region"], said["zone"]) == ("operator", "operator")


@pytest.mark.parametrize("way", WAYS)
async def test_the_library_sets_every_setting_and_sets_it_back(tmp_path: Path, way: str) -> None:
    nothing: dict[str, Any] = {}
    for one in settings_for(way):
        put(nothing, one, None)
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("x", connect=False, **every_fact(way))
        assert_all_are_set(view.connector.configuration, way)
        view = await hub.connectors.update("x", connect=False, **nothing)
        assert_none_is_set(view.connector.configuration, way)
        await hub.connectors.update("x", connect=False, **every_fact(way))
        whole = {one.path[0]: None for one in settings_for(way)}
        view = await hub.connectors.update("x", connect=False, **whole)
        assert_none_is_set(view.connector.configuration, way)
        assert view.connector.configuration.model_fields_set <= {*BARE[way], "env", "headers", "secrets"}


@pytest.mark.parametrize("way", WAYS)
async def test_a_file_and_an_export_hold_every_setting(tmp_path: Path, way: str) -> None:
    text = json.dumps({"dragoman": 1, "connectors": {"x": every_fact(way)}})
    async with open_hub(tmp_path / "one") as hub:
        (step,) = await hub.imports.apply([text], connect=False)
        assert step.action == "add", step.reason
        assert_all_are_set((await hub.connectors.get("x")).connector.configuration, way)
        exported = await hub.exports.dragoman()
    async with open_hub(tmp_path / "two") as hub:
        await hub.imports.apply([exported], connect=False)
        assert_all_are_set((await hub.connectors.get("x")).connector.configuration, way)
        assert await hub.exports.dragoman() == exported


async def test_a_file_gives_every_kind_of_credential(tmp_path: Path) -> None:
    service = {"openapi": "https://tools.example"}
    given: dict[str, dict[str, Any]] = {
        "a": {**service, "basic": "ann:secret"},
        "b": {**service, "api_key": "k", "api_key_in": "query", "api_key_header": "key"},
        "c": {**service, "auth": {"kind": "oauth", "client_id": "c"}, "oauth_client_secret": "s"},
        "d": {**service, "bearer": "t"},
    }
    async with open_hub(tmp_path) as hub:
        steps = await hub.imports.apply([json.dumps({"dragoman": 1, "connectors": given})], connect=False)
        assert [step.reason for step in steps] == [""] * 4
        kept = {view.connector.slug: view.connector.configuration for view in await hub.connectors.list()}
    assert kept["a"].auth.kind == "basic"
    assert (kept["b"].auth.kind, kept["b"].auth.place, kept["b"].auth.header) == ("apikey", "query", "key")
    assert kept["c"].secrets == ("oauth_client",)
    assert kept["d"].secrets == ("auth",)


async def test_what_is_named_inside_a_setting_changes_alone(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        update = hub.connectors.update
        await hub.connectors.add("x", command="sh", connect=False, retry={"tries": 5, "delay": 4})
        view = await update("x", connect=False, retry={"tries": None, "cap": 9})
        retry = view.connector.configuration.retry
        assert (retry.tries, retry.delay, retry.cap) == (3, 4, 9)


async def test_a_new_way_to_sign_in_takes_nothing_over(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        url = "https://tools.example/mcp"
        await hub.connectors.add("x", url=url, api_key="k", api_key_header="X-Ours", connect=False)
        view = await hub.connectors.update("x", connect=False, api_key="another")
        assert view.connector.configuration.auth.header == "X-Ours"
        view = await hub.connectors.update("x", connect=False, auth={"kind": "oauth", "client_id": "c"})
        assert view.connector.configuration.auth.header == "X-API-Key"
        view = await hub.connectors.update("x", connect=False, auth=None)
        assert view.connector.configuration.auth.kind == "none"
        assert view.connector.configuration.secrets == ()


async def test_what_a_connector_cannot_be_without_is_not_set_back(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("x", command="sh", connect=False)
        with pytest.raises(InvalidConfig, match="command"):
            await hub.connectors.update("x", command=None)


NOUNS = (AgentProfile, User, ApiKey, Workspace)


def facts_of(noun: type, value: Any) -> dict[str, Any]:
    """All settings of a noun, each with what `value` says of it."""
    facts: dict[str, Any] = {}
    for one in people_set(noun):
        put(facts, one, value(one))
    return facts


def nothing(one: Described) -> None:
    return None


def assert_set(noun: type, made: object, chosen: bool) -> None:
    for one in people_set(noun):
        value = other_value(one) if chosen else one.default
        value = frozenset(value) if isinstance(one.of(made), frozenset) else value
        if one.name == "connectors":
            value = ()  # a worker has just those that it was given
        if one.kind != "moment" or not chosen:
            assert one.of(made) == value, one.name


@pytest.mark.parametrize("noun", NOUNS)
def test_every_setting_of_people_says_what_it_means_and_who_may_change_it(noun: type) -> None:
    for one in people_set(noun):
        assert one.setting.meaning.endswith("."), one.name
        assert one.setting.who in ("admin", "owner"), one.name
    keys = [one.key for one in people_set(noun)]
    assert len(keys) == len({*keys})


async def test_the_library_sets_every_setting_of_people_and_sets_it_back(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        facts = {noun: facts_of(noun, other_value) for noun in NOUNS}
        back = {noun: facts_of(noun, nothing) for noun in NOUNS}
        agent = await hub.agents.create("w", **facts[AgentProfile])
        assert_set(AgentProfile, agent, chosen=True)
        assert_set(AgentProfile, await hub.agents.update("w", **back[AgentProfile]), chosen=False)
        place = await hub.people.update_workspace("local", **facts[Workspace])
        assert_set(Workspace, place, chosen=True)
        assert_set(Workspace, await hub.people.update_workspace("local", **back[Workspace]), chosen=False)
        assert_set(User, await hub.people.add_user("ann", **facts[User]), chosen=True)
        assert_set(User, await hub.people.update_user("ann", **back[User]), chosen=False)
        key, _ = await hub.people.add_key("k", user="ann", **facts[ApiKey])
        assert_set(ApiKey, key, chosen=True)
        assert_set(ApiKey, await hub.people.update_key(key.id, **back[ApiKey]), chosen=False)
        (kept,) = await hub.people.keys("ann")
        assert kept == await hub.people.update_key(key.id), "what is not given stays as it is"
        ann = await hub.people.update_user("ann", limits={"calls_per_hour": 5})
        assert await hub.people.update_user("ann") == ann
        assert await hub.people.update_user("ann", limits={}) == ann


async def test_a_file_and_an_export_hold_every_setting_of_an_agent(tmp_path: Path) -> None:
    facts = {**facts_of(AgentProfile, other_value), "connectors": ["x"], "auto_discover": True}
    document = {"dragoman": 1, "connectors": {"x": {"command": "sh"}}, "agents": {"clerk": facts}}
    async with open_hub(tmp_path / "one") as hub:
        steps = await hub.imports.apply([json.dumps(document)], connect=False)
        assert [step.action for step in steps] == ["add", "add"], steps
        agent = await hub.agents.get("clerk")
        exported = await hub.exports.dragoman()
    for one in people_set(AgentProfile):
        value = ("x",) if one.name == "connectors" else other_value(one)
        assert one.of(agent) == (frozenset(value) if isinstance(one.of(agent), frozenset) else value)
    async with open_hub(tmp_path / "two") as hub:
        await hub.imports.apply([exported], connect=False)
        again = await hub.agents.get("clerk")
        assert await hub.exports.dragoman() == exported
        assert [step.action for step in await hub.imports.plan([exported])] == ["unchanged", "unchanged"]
    for one in people_set(AgentProfile):
        assert one.of(again) == one.of(agent), one.name


async def test_of_an_agent_in_a_file_unknown_settings_are_told(tmp_path: Path) -> None:
    """`auto_discover` is the connector's: older exports have it with every agent."""
    agents = {"a": {"modle": "offline"}, "b": {"exposure": "nothing such"}, "c": {"auto_discover": False}}
    async with open_hub(tmp_path) as hub:
        steps = await hub.imports.plan([json.dumps({"dragoman": 1, "agents": agents})])
    assert [(step.name, step.action) for step in steps if step.name != "c"] == [
        ("a", "invalid"),
        ("b", "invalid"),
    ]
    assert "modle" in next(step.reason for step in steps if step.name == "a")
    assert [step.action for step in steps if step.name == "c"] == ["add"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewlyDescribed(Agent):
    """With settings that no table knows."""

    region: Annotated[str | None, Setting("Where it works.")] = None
    zones: Annotated[frozenset[str], Setting("Where else.")] = frozenset()
    until: Annotated[datetime | None, Setting("When it ends.")] = None


def test_a_setting_without_a_column_is_kept_in_the_row() -> None:
    bare = NewlyDescribed(id="agt_1", workspace="local", name="w", kind="worker")
    written: Any = row_of(bare, tables.agents)["settings"]
    assert written.document == {}
    made = NewlyDescribed(
        id="agt_1",
        workspace="local",
        name="w",
        kind="worker",
        region="north",
        zones=frozenset({"b", "a"}),
        until=datetime(2027, 1, 31, tzinfo=UTC),
    )
    row: Any = row_of(made, tables.agents)
    row["settings"] = row["settings"].beside({})
    assert json.loads(json.dumps(row["settings"])) == {
        "region": "north",
        "zones": ["a", "b"],
        "until": "2027-01-31T00:00:00+00:00",
    }
    assert noun_of(NewlyDescribed, row) == made
    assert noun_of(Agent, row).name == "w", "what nobody describes any more is left out"


def test_when_something_ends_is_said_from_now_or_as_a_date() -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    for text, expected in {
        "30d": "2027-01-31",
        " 12 H ": "2027-01-01T12:00",
        "2027-02-01": "2027-02-01",
    }.items():
        assert read_moment(text, now) == datetime.fromisoformat(expected).replace(tzinfo=UTC)
    for wrong in ("soon", "30", "d", "-1d"):
        with pytest.raises(InvalidArguments):
            read_moment(wrong, now)
