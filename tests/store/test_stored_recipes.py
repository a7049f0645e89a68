"""Recipes in a store: whose they are, how many there may be, and what takes them along."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from store_values import NOON, a_connector

from dragoman.errors import NotFound, Outdated
from dragoman.people import User, Workspace
from dragoman.recipe import Recipe
from dragoman.store import Store

pytestmark = pytest.mark.anyio


def a_recipe(id: str = "recipe_1", **facts: Any) -> Recipe:
    defaults: dict[str, Any] = {
        "id": id,
        "workspace": "acme",
        "owner": "ann",
        "connector_id": "con_mail",
        "question": "Send <to> a mail",
        "text": "1. send(to: string)",
        "tools": ("send",),
        "run": "run_1",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Recipe(**(defaults | facts))


async def with_connectors(store: Store) -> None:
    await store.people.put_workspace(Workspace(id="acme", name="Acme", created_at=NOON))
    await store.people.put_user(User(id="ann", workspace="acme", name="Ann", created_at=NOON))
    for slug in ("mail", "chat"):
        await store.connectors.add(a_connector(slug, workspace="acme", owner=""), [])


async def ids(store: Store, user: str, connector: str | None = None, workspace: str = "acme") -> list[str]:
    return [one.id for one in await store.recipes.list(workspace, user, connector)]


async def test_a_user_has_their_own_and_the_workspaces_newest_first(store: Store) -> None:
    await with_connectors(store)
    recipe = a_recipe()
    later = {"created_at": NOON + timedelta(hours=1)}
    assert await store.recipes.put(recipe, 9)
    assert await store.recipes.put(a_recipe("recipe_2", connector_id="con_chat", **later), 9)
    assert await store.recipes.put(a_recipe("shared_1", owner="", run=""), 9)
    assert await store.recipes.put(a_recipe("recipe_3", owner="bob"), 9)
    assert await store.recipes.find("acme", "recipe_1") == recipe
    assert await store.recipes.find("other", "recipe_1") is None
    assert await ids(store, "ann") == ["recipe_2", "recipe_1", "shared_1"]
    assert await ids(store, "ann", "con_chat") == ["recipe_2"]
    assert await ids(store, "bob") == ["recipe_3", "shared_1"]
    assert await ids(store, "ann", workspace="other") == []
    await store.recipes.remove("other", "recipe_1")
    await store.recipes.remove("acme", "recipe_2")
    assert await ids(store, "ann") == ["recipe_1", "shared_1"]


async def test_an_owner_has_no_more_than_the_most_and_still_changes_those(store: Store) -> None:
    await with_connectors(store)
    assert await store.recipes.put(a_recipe(), 1)
    assert not await store.recipes.put(a_recipe("recipe_2"), 1)
    assert await store.recipes.put(a_recipe("shared_1", owner=""), 1)
    found = await store.recipes.find("acme", "recipe_1")
    assert found is not None
    assert await store.recipes.put(replace(found, text="1. other()"), 1)
    with pytest.raises(Outdated):
        await store.recipes.put(replace(found, text="1. third()"), 1)
    assert [one.text for one in await store.recipes.list("acme", "ann")] == [
        "1. other()",
        "1. send(to: string)",
    ]


async def test_recipes_go_with_their_connector_their_owner_and_their_workspace(store: Store) -> None:
    await with_connectors(store)
    for recipe in (a_recipe(), a_recipe("recipe_2", connector_id="con_chat"), a_recipe("shared_1", owner="")):
        assert await store.recipes.put(recipe, 9)
    await store.connectors.remove("acme", "con_chat")
    assert await ids(store, "ann") == ["recipe_1", "shared_1"]
    with pytest.raises(NotFound):
        await store.recipes.put(a_recipe("recipe_4", connector_id="con_chat"), 9)
    await store.people.remove_user("acme", "ann")
    assert await ids(store, "ann") == ["shared_1"]
    await store.people.remove_workspace("acme")
    assert await ids(store, "ann") == []
