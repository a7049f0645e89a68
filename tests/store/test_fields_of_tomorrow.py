"""Rows of a later version, which works beside this one while a deploy lasts: what is not known is kept."""

from dataclasses import replace
from typing import Any, cast

import pytest
from run_values import a_run, accept, an_agent
from sqlalchemy import Table, select, update
from store_values import NOON, a_connector, a_tool, a_version

from dragoman.bundle import Bundle, BundleEntry
from dragoman.connector import Configuration
from dragoman.people import User, UserLimits, Workspace
from dragoman.runs.journal_record import load_reply
from dragoman.store import Store, tables

pytestmark = pytest.mark.anyio
# Documents whose fields are ours; others are of servers, of models and of people.
OURS = {
    "connectors": ("configuration",),
    "tools": ("definition",),
    "tool_versions": ("definition",),
    "workspaces": ("limits", "settings"),
    "users": ("limits", "settings"),
    "agents": ("settings",),
    "runs": ("limits", "usage"),
    "bundles": ("tools",),
}
NESTED = ("retry", "annotations")


def _of_tomorrow(document: Any) -> Any:
    if isinstance(document, list):
        return [_of_tomorrow(one) for one in cast("list[Any]", document)]
    inner = {name: _of_tomorrow(document[name]) for name in NESTED if name in document}
    return {**document, **inner, "of_tomorrow": {"is": ["new"]}}


def _documents(store: Store) -> Any:
    return cast("Any", store.people)._database


async def _write_tomorrow(store: Store) -> None:
    database = _documents(store)
    for name, columns in OURS.items():
        table = tables.metadata.tables[name]
        for row in await database.rows(select(table)):
            later = {column: _of_tomorrow(row[column]) for column in columns}
            await database.execute(update(table).where(_is(table, row)).values(later))


def _is(table: Table, row: Any) -> Any:
    condition: Any = True
    for column in table.primary_key.columns:
        condition = (column == row[column.name]) & condition
    return condition


async def test_what_a_later_version_wrote_is_read_and_kept(store: Store) -> None:
    configuration = Configuration.checked({"command": "date", "retry": {"tries": 2}})
    connector = a_connector(configuration=configuration)
    tool, run = a_tool(), a_run()
    bundle = Bundle(
        workspace="acme", owner="", name="ours", tools=(BundleEntry(connector="con_1", tool="now"),)
    )
    await store.connectors.add(connector, [])
    await store.connectors.save_tools([tool], [a_version(tool)], [])
    await store.people.put_workspace(Workspace(id="acme", name="Acme", created_at=NOON))
    ann = User(id="ann", workspace="acme", name="Ann", limits=UserLimits(calls_per_hour=7), created_at=NOON)
    await store.people.put_user(ann)
    await store.agents.put(an_agent())
    await store.bundles.put(bundle, 9)
    await accept(store, run)
    kept = await store.runs.find(run.workspace, run.id)
    assert kept is not None
    await _write_tomorrow(store)

    [found] = await store.connectors.list()
    assert found.configuration == configuration
    [read] = await store.connectors.tools()
    assert read.definition == tool.definition
    assert [one.definition for one in await store.connectors.versions(read)] == [tool.definition]
    assert await store.runs.find(run.workspace, run.id) == kept
    [agent], [user] = await store.agents.list(), await store.people.users("acme")
    [workspace], [ours] = await store.people.workspaces(), await store.bundles.list()
    assert user.limits == ann.limits

    # Changed here, as a person does at a node that was not replaced yet.
    quicker = Configuration.checked({"command": "date", "retry": {"tries": 5}})
    await store.connectors.update(replace(found, configuration=quicker, revision=found.revision + 1))
    await store.agents.put(replace(agent, description="another"))
    await store.people.put_user(replace(user, name="Anna"))
    await store.people.put_workspace(replace(workspace, name="Acme & Co"))
    await store.bundles.put(replace(ours, title="Ours"), 9)
    database = _documents(store)
    for name in ("connectors", "agents", "users", "workspaces", "bundles"):
        [row] = await database.rows(select(tables.metadata.tables[name]))
        for column in OURS[name]:
            [document] = row[column] if isinstance(row[column], list) else [row[column]]
            assert document["of_tomorrow"] == {"is": ["new"]}, (name, column)
    [row] = await database.rows(select(tables.connectors))
    assert row["configuration"]["retry"] == {"tries": 5, "of_tomorrow": {"is": ["new"]}}
    assert (await store.people.users("acme"))[0].name == "Anna"


def test_a_journal_of_a_later_version_is_read() -> None:
    assert load_reply({"content": "a", "of_tomorrow": 1}) == load_reply({"content": "a"})
