import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import pytest
from listings import defined, listed, made_connector, native_connector, open_catalog

from dragoman.catalog import Catalog
from dragoman.errors import DragomanError, NotFound
from dragoman.events import Events
from dragoman.names import public_name
from dragoman.scope import LOCAL_CALLER, Caller, identity_of
from dragoman.store import open_store
from dragoman.store.protocols import ConnectorStore
from dragoman.store.records import ToolVersion
from dragoman.tool import Tool, ToolDefinition
from patience import patient

pytestmark = pytest.mark.anyio
ANN, BOB = Caller(user="ann"), Caller(user="bob")


def names(tools: list[Tool]) -> list[str]:
    return [tool.name for tool in tools]


class Forgetful:
    """A store that keeps nothing: what a catalogue uses of `ConnectorStore`."""

    async def tools(self, workspace: str | None = None) -> Sequence[Tool]:
        return ()

    async def save_tools(
        self, tools: Sequence[Tool], versions: Sequence[ToolVersion], removed: Sequence[Tool]
    ) -> None: ...

    async def versions(self, tool: Tool) -> Sequence[ToolVersion]:
        return ()


async def test_tools_are_known_again_after_a_restart(database_url: str) -> None:
    connector = made_connector()
    async with open_catalog(database_url, connector) as catalog:
        await catalog.refresh(connector, listed("now", "zones"))
        await catalog.disable("mcp_time_zones", LOCAL_CALLER)
    async with open_catalog(database_url) as catalog:
        assert names(catalog.list(LOCAL_CALLER)) == ["mcp_time_now", "mcp_time_zones"]
        assert catalog.state(connector.id) == "ready"
        assert catalog.get("mcp_time_now", LOCAL_CALLER).enabled
        assert catalog.info("mcp_time_zones", LOCAL_CALLER).state == "disabled"


async def test_a_tool_is_found_by_every_name_it_has(sqlite_url: str) -> None:
    connector = made_connector("email-mcp", aliases=("email_mcp",))
    async with open_catalog(sqlite_url, connector) as catalog:
        await catalog.refresh(connector, listed("send-email"))
        tool = catalog.get("mcp_email-mcp_send-email", LOCAL_CALLER)
        assert catalog.find("email-mcp__send-email", LOCAL_CALLER) is tool
        assert catalog.find("email_mcp__send-email", LOCAL_CALLER) is tool
        assert catalog.find("send-email", LOCAL_CALLER) is None
        assert catalog.is_mcp("email-mcp__send-email", LOCAL_CALLER)
        assert catalog.info(tool.name, LOCAL_CALLER).alias == "email-mcp__send-email"
        catalog.adopt(replace(connector, aliases=("post",)))
        assert catalog.find("email_mcp__send-email", LOCAL_CALLER) is None
        assert catalog.find("post__send-email", LOCAL_CALLER) is tool


async def test_a_slug_wins_over_an_alias_that_spells_the_same(sqlite_url: str) -> None:
    real, pretender = made_connector("a"), made_connector("pretender", aliases=("a__b",))
    async with open_catalog(sqlite_url, real, pretender) as catalog:
        await catalog.refresh(pretender, listed("c"))
        await catalog.refresh(real, listed("b__c"))
        assert catalog.get("a__b__c", LOCAL_CALLER).slug == "a"
        await catalog.refresh(real, listed())
        assert catalog.get("a__b__c", LOCAL_CALLER).slug == "pretender"


async def test_an_unknown_name_gets_a_suggestion_out_of_what_the_caller_may_see(sqlite_url: str) -> None:
    common, own = made_connector("time"), made_connector("vault", owner="ann")
    async with open_catalog(sqlite_url, common, own) as catalog:
        await catalog.refresh(common, listed("get_current_time"))
        await catalog.refresh(own, listed("secret_plan"))
        with pytest.raises(NotFound) as caught:
            catalog.get("mcp_time_get_curent_time", BOB)
        assert caught.value.hint == "did you mean 'mcp_time_get_current_time'?"
        with pytest.raises(NotFound) as hidden:
            catalog.get("mcp_vault_secret_plan", BOB)
        with pytest.raises(NotFound) as absent:
            catalog.get("mcp_vault_secret_plam", BOB)
        assert "vault" not in (hidden.value.hint or "")
        assert hidden.value.hint == absent.value.hint
        assert names(catalog.list(BOB)) == ["mcp_time_get_current_time"]
        assert catalog.get("mcp_vault_secret_plan", ANN).slug == "vault"


async def test_nothing_crosses_the_border_of_a_workspace(sqlite_url: str) -> None:
    here, there = made_connector(), made_connector(id="there", workspace="other")
    async with open_catalog(sqlite_url, here, there) as catalog:
        await catalog.refresh(here, listed("now"))
        await catalog.refresh(there, listed("now", "more"))
        other = Caller(workspace="other")
        assert names(catalog.list(LOCAL_CALLER)) == ["mcp_time_now"]
        assert catalog.get("mcp_time_now", other).connector_id == "there"
        assert catalog.find("mcp_time_more", LOCAL_CALLER) is None


async def test_a_list_that_belongs_to_an_identity_is_shown_to_nobody_else(database_url: str) -> None:
    connector = made_connector("mail")
    async with open_catalog(database_url, connector) as catalog:
        await catalog.refresh(connector, listed("read"))
        await catalog.refresh(connector, listed("read", "admin"), identity_of(ANN, "user"))
    async with open_catalog(database_url) as catalog:
        assert names(catalog.list(ANN)) == ["mcp_mail_admin", "mcp_mail_read"]
        assert names(catalog.list(BOB)) == ["mcp_mail_read"]
        assert catalog.find("mcp_mail_admin", BOB) is None
        assert catalog.find("mail__admin", BOB) is None
        assert catalog.find("mcp_mail_admin", ANN) is not None
        await catalog.refresh(connector, listed("read", "new"))
        assert catalog.find("mcp_mail_new", ANN) is None


async def test_two_tools_whose_names_collide_get_two_names(sqlite_url: str) -> None:
    """Eight hex digits can be forced; a name that somebody holds stands for any such collision."""
    connector = made_connector()
    taken = public_name("time", "ü")
    async with open_catalog(sqlite_url, connector) as catalog:
        catalog.declare(native_connector(), [defined(taken)])
        await catalog.refresh(connector, listed("ü"))
        tool = catalog.get("time__ü", LOCAL_CALLER)
        assert tool.name == public_name("time", "ü", 1)
        assert not catalog.is_mcp(taken, LOCAL_CALLER)
        await catalog.refresh(connector, listed("ü", "other"))
        assert catalog.get("time__ü", LOCAL_CALLER).name == tool.name


async def test_a_bad_tool_never_loses_the_others(sqlite_url: str) -> None:
    connector = made_connector()
    bad: list[ToolDefinition] = [
        defined("twice", "first"),
        defined("twice", "second"),
        defined(""),
        defined("listy", input_schema=[1]),  # type: ignore[arg-type]
        defined("texty", input_schema={"type": "string"}),
        defined("invalid", input_schema={"type": "object", "properties": {"a": {"type": "any"}}}),
        defined("unwritable", output_schema={"a": object()}),
        defined("huge", input_schema={"type": "object", "description": "x" * 600_000}),
        defined("good"),
    ]
    async with open_catalog(sqlite_url, connector) as catalog:
        changes = await catalog.refresh(connector, listed(*bad))
        assert names(catalog.list(LOCAL_CALLER)) == ["mcp_time_good", "mcp_time_twice"]
        assert catalog.get("mcp_time_twice", LOCAL_CALLER).definition.description == "first"
        assert [reason.split(":")[0] for reason in changes.skipped] == [
            "'twice'", "''", "'listy'", "'texty'", "'invalid'", "'unwritable'", "'huge'"
        ]  # fmt: skip
        assert "properties/a/type" in changes.skipped[4]


async def test_when_the_store_fails_nothing_has_changed(sqlite_url: str) -> None:
    """The connector is not in the store, so the real one refuses its tools."""
    stranger = made_connector("stranger")
    async with open_catalog(sqlite_url) as catalog:
        with pytest.raises(DragomanError), catalog.populating(stranger):
            assert catalog.state(stranger.id) == "populating"
            await catalog.refresh(stranger, listed("now"))
        assert catalog.list(LOCAL_CALLER) == []
        assert catalog.state(stranger.id) == "empty"


async def test_the_state_tells_whether_the_list_can_be_trusted(sqlite_url: str) -> None:
    connector = made_connector()
    async with open_catalog(sqlite_url, connector) as catalog:
        assert catalog.state(connector.id) == "empty"
        with catalog.populating(connector):
            assert catalog.state(connector.id) == "populating"
            await catalog.refresh(connector, listed("now"))
        assert catalog.state(connector.id) == "ready"
        with pytest.raises(OSError), catalog.populating(connector):
            assert catalog.state(connector.id) == "ready"
            raise OSError
        assert catalog.state(connector.id) == "stale"
        await catalog.refresh(connector, listed("now"))
        catalog.mark_stale(connector.id)
        assert catalog.state(connector.id) == "stale"
        await catalog.refresh(connector, listed("now"))
        catalog.adopt(replace(connector, revision=2))
        assert catalog.state(connector.id) == "stale"


async def test_a_removed_connector_does_not_come_back_with_a_late_listing(sqlite_url: str) -> None:
    connector = made_connector()
    async with open_catalog(sqlite_url, connector) as catalog:
        await catalog.refresh(connector, listed("now"))
        catalog.forget(connector.id)
        assert catalog.list(LOCAL_CALLER) == []
        assert catalog.find("mcp_time_now", LOCAL_CALLER) is None
        with pytest.raises(NotFound):
            await catalog.refresh(connector, listed("now"))
        assert catalog.list(LOCAL_CALLER) == []


async def test_refreshes_of_one_connector_happen_one_after_another(sqlite_url: str) -> None:
    connector = made_connector()
    async with open_catalog(sqlite_url, connector) as catalog:
        async with asyncio.TaskGroup() as tasks:
            for number in range(8):
                tasks.create_task(catalog.refresh(connector, listed(defined("now", f"text {number}"))))
        versions = await catalog.versions("mcp_time_now", LOCAL_CALLER)
        assert [version.version for version in versions] == list(range(1, 9))
        assert catalog.get("mcp_time_now", LOCAL_CALLER).version == 8


async def test_native_tools_keep_their_own_name_and_live_in_memory(sqlite_url: str) -> None:
    connector = native_connector()
    async with open_catalog(sqlite_url) as catalog:
        catalog.declare(connector, [defined("add", "Adds."), defined("not legal!")])
        changes = catalog.declare(connector, [defined("add", "Adds."), defined("subtract")])
        assert names(list(changes.added)) == ["subtract"]
        assert names(catalog.list(LOCAL_CALLER)) == ["add", "subtract"]
        tool = catalog.get("add", LOCAL_CALLER)
        assert tool.model_description == "Adds."
        await catalog.disable("add", LOCAL_CALLER)
        assert not catalog.get("add", LOCAL_CALLER).enabled
        assert await catalog.versions("add", LOCAL_CALLER) == ()


@pytest.fixture
def garbage_stays() -> Iterator[None]:
    """For who measures: collecting what other tests left is nobody's work."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("garbage_stays")
async def test_thousands_of_tools_do_not_hold_up_the_loop() -> None:
    """The planning only: what the store does with the rows is measured there."""

    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(10)}}
    tools = [defined(f"tool_{number}", "words " * 20, input_schema=schema) for number in range(5000)]
    catalog = Catalog(cast("ConnectorStore", Forgetful()), Events())
    longest, done = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not done:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watch())
        await asyncio.sleep(0)
        begun = time.thread_time()
        await catalog.refresh(made_connector(), listed(*tools))
        work = time.thread_time() - begun
        done = True
    assert len(catalog.list(LOCAL_CALLER)) == 5000
    # A share of the whole, so that a busy machine does not matter: about 15 of 150 ms on a quiet one.
    assert longest < work / 2, f"{longest * 1000:.0f} of {work * 1000:.0f} ms"
    before = time.thread_time()
    with pytest.raises(NotFound, match="no tool"):
        catalog.get("mcp_time_tool_49999", LOCAL_CALLER)
    assert time.thread_time() - before < patient(0.2)


async def test_tools_that_come_by_the_thousand_are_frozen_once_where_the_process_freezes() -> None:
    """As a service and these tests do. What comes and goes is not frozen again and again."""
    gc.freeze()
    catalog, connector = Catalog(cast("ConnectorStore", Forgetful()), Events()), made_connector()
    tools = [defined(f"tool_{number}", input_schema={"type": "object"}) for number in range(1000)]
    before = gc.get_freeze_count()
    await catalog.refresh(connector, listed(*tools[:900]))
    assert gc.get_freeze_count() <= before
    await catalog.refresh(connector, listed(*tools))
    frozen = gc.get_freeze_count()
    assert frozen > before + 1000
    await catalog.refresh(connector, listed())
    await catalog.refresh(connector, listed(*tools))
    assert gc.get_freeze_count() < frozen, "those that went are freed, and those that came are not frozen"


async def test_the_catalog_of_an_empty_store_is_empty(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        catalog = await Catalog.load(store, Events())
        assert catalog.list(LOCAL_CALLER) == []
        with pytest.raises(NotFound):
            catalog.get("mcp_time_now", LOCAL_CALLER)
