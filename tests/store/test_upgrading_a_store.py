"""A database as the first version of Dragoman left it, opened by this one."""

import json

import pytest
from sqlalchemy import create_engine, text
from store_values import NOON, a_connector, a_secret, a_tool, a_version

from dragoman.people import Preferences, UserLimits
from dragoman.store import open_store
from dragoman.store.location import DatabaseLocation
from dragoman.store.schema import HEAD, Schema, migrate, migrated, read_schema

pytestmark = pytest.mark.anyio

_CONNECTOR = (
    "INSERT INTO connectors (id, workspace, owner, slug, configuration, description, aliases, enabled,"
    " revision, created_at, updated_at)"
    " VALUES (:id, 'local', :owner, :slug, :configuration, '', '[]', true, 1, :now, :now)"
)
_TOOL = (
    "INSERT INTO tools (workspace, identity, name, connector_id, slug, definition, version, accepted_version,"
    " fingerprint, enabled, is_mcp, cache_ttl, allowed_callers, first_seen)"
    " VALUES ('local', '', 'mcp_time_now', 'con_time', 'time', :definition, 1, 1, :fingerprint,"
    " true, true, 0.0, :callers, :now)"
)
_VERSION = (
    "INSERT INTO tool_versions (workspace, identity, tool, version, fingerprint, definition, diff, seen_at)"
    " VALUES ('local', '', 'mcp_time_now', 1, :fingerprint, :definition, '', :now)"
)
_SECRET = (
    'INSERT INTO secrets (workspace, connector_id, "user", name, key_id, nonce, ciphertext)'
    " VALUES ('local', 'con_time', '', 'env:TOKEN', '0123abcd', :nonce, :ciphertext)"
)


@pytest.fixture
def is_migrated() -> bool:
    """Here stores make their own tables."""
    return False


async def test_a_migration_is_written_down_once_and_the_making_of_tables_is_none(database_url: str) -> None:
    assert migrated(database_url) == Schema(HEAD, None) == migrated(database_url)
    async with open_store(database_url):
        assert read_schema(database_url) == Schema(HEAD, None)


async def test_a_database_says_from_where_it_was_migrated_whoever_did_it(database_url: str) -> None:
    _write_old_rows(database_url)
    async with open_store(database_url):
        schema = read_schema(database_url)
    assert schema.migration is not None
    assert (schema.version, schema.migration.found) == (HEAD, "0001")
    assert [step[:4] for step in schema.migration.steps] == [f"{n:04}" for n in range(2, int(HEAD) + 1)]
    assert schema == migrated(database_url)


def _write_old_rows(url: str) -> None:
    location = DatabaseLocation.of(url)
    if location.is_sqlite:
        location.make_file()
    migrate(location, busy_timeout=1, target="0001")
    tool, secret = a_tool(), a_secret()
    configuration = json.dumps({"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}})
    definition = json.dumps(
        {
            "original_name": "now",
            "title": "Now",
            "description": tool.definition.description,
            "input_schema": tool.definition.input_schema,
            "output_schema": None,
            "annotations": {"read_only": True, "destructive": None, "idempotent": None, "open_world": None},
            "meta": None,
        }
    )
    facts = {
        "configuration": configuration,
        "definition": definition,
        "fingerprint": tool.fingerprint,
        "callers": json.dumps(["agent", "direct", "mcp"]),
        "now": NOON.replace(tzinfo=None) if location.is_sqlite else NOON,
        "nonce": secret.nonce,
        "ciphertext": secret.ciphertext,
    }
    engine = create_engine(location.blocking_url)
    with engine.begin() as connection:
        connection.execute(text(_CONNECTOR), {**facts, "id": "con_time", "owner": "owner", "slug": "time"})
        connection.execute(text(_CONNECTOR), {**facts, "id": "con_app", "owner": "", "slug": "app"})
        for statement in (_TOOL, _VERSION, _SECRET):
            connection.execute(text(statement), facts)
    engine.dispose()


async def test_an_old_database_keeps_its_connectors_tools_versions_and_secrets(database_url: str) -> None:
    _write_old_rows(database_url)
    async with open_store(database_url) as store:
        app, time = await store.connectors.list()
        assert (app.origin, time.origin) == ("files", "operator")
        before_boxes = a_connector().configuration.changed({"sandbox": "none"})
        assert time == a_connector(configuration=before_boxes), "what ran without a box goes on without"
        assert await store.connectors.tools() == [a_tool()]
        assert await store.connectors.versions(a_tool()) == [a_version(a_tool())]
        assert await store.connectors.secrets(time, "local", "") == [a_secret()]


async def test_after_the_upgrade_removing_a_connector_still_takes_all_along(database_url: str) -> None:
    _write_old_rows(database_url)
    async with open_store(database_url) as store:
        await store.connectors.remove("local", "con_time")
        assert await store.connectors.tools() == []
        assert await store.connectors.versions(a_tool()) == []
        assert await store.connectors.secrets(a_connector(), "local", "") == []


async def test_after_the_upgrade_two_users_may_give_their_connectors_one_name(database_url: str) -> None:
    _write_old_rows(database_url)
    other = a_connector(id="con_other", owner="bob")
    async with open_store(database_url) as store:
        await store.connectors.add(other, [])
        await store.connectors.save_tools([a_tool(connector_id="con_other")], [], [])
        assert len(await store.connectors.tools()) == 2


async def test_what_was_kept_as_bounds_are_the_limits_of_workspaces_users_and_preferences(
    database_url: str,
) -> None:
    location = DatabaseLocation.of(database_url)
    if location.is_sqlite:
        location.make_file()
    migrate(location, busy_timeout=1, target="0004")
    facts = {
        "hourly": json.dumps({"calls_per_hour": 7}),
        "daily": json.dumps({"cost_per_day": 1.5}),
        "chosen": json.dumps({"connectors": ["time"], "auto_load": False, "bounds": {"tokens_per_day": 9}}),
        "now": NOON.replace(tzinfo=None) if location.is_sqlite else NOON,
    }
    engine = create_engine(location.blocking_url)
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO workspaces VALUES ('acme', 'acme', 'default', :hourly, :now)"), facts
        )
        connection.execute(
            text(
                "INSERT INTO users VALUES"
                " ('acme', 'ada', 'ada', 'member', '[]', :daily, :chosen, true, null, :now)"
            ),
            facts,
        )
    engine.dispose()
    async with open_store(database_url) as store:
        [acme] = await store.people.workspaces()
        [ada] = await store.people.users("acme")
    assert acme.limits == UserLimits(calls_per_hour=7)
    assert ada.limits == UserLimits(cost_per_day=1.5)
    assert ada.preferences == Preferences(
        connectors=("time",), auto_load=False, limits=UserLimits(tokens_per_day=9)
    )
