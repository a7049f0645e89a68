"""Every setting of a connector can be set by every door and set back; it is the operator's unless it says."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest

from dragoman.connector import Configuration
from dragoman.errors import InvalidConfig
from dragoman.setting import Setting, settings_of
from servers.every_setting import (
    BARE,
    assert_all_are_set,
    assert_none_is_set,
    every_fact,
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
