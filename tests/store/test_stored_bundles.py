"""Bundles in a store: as they were written, whose they are, and what takes them along."""

from dataclasses import replace
from typing import Any

import pytest
from store_values import NOON

from dragoman.bundle import Bundle, BundleEntry
from dragoman.errors import DragomanError, Outdated
from dragoman.people import User, Workspace
from dragoman.scope import APP
from dragoman.store import Store

pytestmark = pytest.mark.anyio
# A value of null is fixed, and not the same as none.
ENTRY = {"connector": "con_1", "tool": "send", "slug": "mail", "parameters": {"to": {"value": None}}}


def a_bundle(name: str = "support", **facts: Any) -> Bundle:
    defaults: dict[str, Any] = {
        "workspace": "acme",
        "owner": "ann",
        "name": name,
        "title": "Support",
        "view": "search",
        "capabilities": frozenset({"mcp_mail", "read_only"}),
        "tools": (BundleEntry.model_validate(ENTRY), BundleEntry(connector="con_2")),
        "resources": ("con_2",),
        "hooks": ("secrets mask",),
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Bundle(**(defaults | facts))


async def test_a_bundle_is_read_as_it_was_written_and_nobody_overwrites(store: Store) -> None:
    bundle = a_bundle()
    assert await store.bundles.put(bundle, 2)
    assert await store.bundles.put(a_bundle("plain", view=None, capabilities=None, tools=()), 2)
    assert not await store.bundles.put(a_bundle("third"), 2)
    assert await store.bundles.put(a_bundle(owner=""), 2)
    assert await store.bundles.put(a_bundle(workspace=APP, owner=""), 2)
    found = await store.bundles.find("acme", "ann", "support")
    assert found is not None
    assert found == bundle
    assert found.tools[0].parameters["to"].has_value
    assert await store.bundles.find("acme", "bob", "support") is None
    assert [one.key for one in await store.bundles.list()] == [
        *((APP, "", "support"), ("acme", "", "support")),
        *(("acme", "ann", "plain"), ("acme", "ann", "support")),
    ]
    with pytest.raises(DragomanError):
        await store.bundles.put(bundle, 9)
    assert await store.bundles.put(replace(found, title="Help"), 2)
    with pytest.raises(Outdated):
        await store.bundles.put(replace(found, title="Aid"), 2)
    await store.bundles.remove("acme", "ann", "plain")
    assert [one.title for one in await store.bundles.list()] == ["Support", "Support", "Help"]


async def test_bundles_go_with_their_owner_and_their_workspace(store: Store) -> None:
    await store.people.put_workspace(Workspace(id="acme", name="Acme", created_at=NOON))
    await store.people.put_user(User(id="ann", workspace="acme", name="Ann", created_at=NOON))
    for one in (a_bundle(), a_bundle(owner=""), a_bundle(workspace=APP, owner="")):
        assert await store.bundles.put(one, 9)
    await store.people.remove_user("acme", "ann")
    assert [one.key for one in await store.bundles.list()] == [(APP, "", "support"), ("acme", "", "support")]
    await store.people.remove_workspace("acme")
    assert [one.key for one in await store.bundles.list()] == [(APP, "", "support")]
