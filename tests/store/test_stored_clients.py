import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from store_values import NOON

from dragoman.people import User, Workspace
from dragoman.store import Store
from dragoman.store.records import ClientSession, OneTimeValue

pytestmark = pytest.mark.anyio
LATER = NOON + timedelta(minutes=5)


def a_session(number: int = 1, **facts: Any) -> ClientSession:
    given: dict[str, Any] = {
        "id": f"s{number}",
        "workspace": "local",
        "user": "ada",
        "caller": "the caller",
        "target": "/mcp",
        "capabilities": {"elicitation": {"form": {}}},
        "lists": {"tools": "abc"},
        "watched": ("file:///a",),
        "used_at": NOON + timedelta(seconds=number),
        **facts,
    }
    return ClientSession(**given)


def a_value(name: str = "v", **facts: Any) -> OneTimeValue:
    given: dict[str, Any] = {
        "id": name,
        "kind": "link",
        "workspace": "local",
        "user": "ada",
        "sealed": b"\x00sealed",
        "expires_at": LATER,
        **facts,
    }
    return OneTimeValue(**given)


async def test_a_session_comes_back_as_it_went_in_and_goes(store: Store) -> None:
    assert await store.clients.open_session(a_session(), 5) == []
    assert await store.clients.find_session("s1") == a_session()
    await store.clients.use_sessions({"s1": LATER, "s9": LATER})
    await store.clients.use_sessions({"s1": NOON})
    await store.clients.use_sessions({})
    assert await store.clients.find_session("s1") == a_session(used_at=LATER)
    await store.clients.remove_session("s1")
    assert await store.clients.find_session("s1") is None
    await store.clients.remove_session("s1")


async def test_a_user_has_so_many_sessions_and_the_least_used_goes(store: Store) -> None:
    for number in (3, 1, 2):
        assert await store.clients.open_session(a_session(number), 3) == []
    assert await store.clients.open_session(a_session(4, user="eve"), 3) == []
    assert await store.clients.open_session(a_session(5), 3, busy=["s1"]) == ["s2"]
    assert await store.clients.open_session(a_session(6), 3, busy=["s1", "s3", "s5"]) is None
    assert await store.clients.find_session("s6") is None
    assert await store.clients.find_session("s1")
    assert await store.clients.open_session(a_session(6), 1) == ["s1", "s3", "s5"]


async def test_changes_of_a_session_at_once_are_all_made(store: Store) -> None:
    await store.clients.open_session(a_session(watched=()), 5)

    async def watch(uri: str) -> None:
        await store.clients.change_session(
            "s1", lambda one: replace(one, watched=(*one.watched, uri)), tells=True
        )

    await asyncio.gather(*(watch(f"u{number}") for number in range(8)))
    found = await store.clients.find_session("s1")
    assert found
    assert sorted(found.watched) == [f"u{number}" for number in range(8)]
    assert await store.clients.change_session("gone", lambda one: one) is None


async def test_sessions_that_nobody_used_are_forgotten(store: Store) -> None:
    for number in (1, 2, 3):
        await store.clients.open_session(a_session(number), 5)
    await store.clients.forget_sessions(NOON + timedelta(seconds=2))
    assert [bool(await store.clients.find_session(f"s{number}")) for number in (1, 2, 3)] == [
        False,
        True,
        True,
    ]


async def test_a_value_is_taken_once_and_not_when_it_is_old(store: Store) -> None:
    assert await store.clients.put_value(a_value(), NOON)
    taken = await asyncio.gather(*(store.clients.take_value("v", NOON) for _ in range(5)))
    assert [one for one in taken if one] == [a_value()]
    assert not await store.clients.has_value("v", NOON)
    await store.clients.put_value(a_value(), NOON)
    assert [await store.clients.has_value("v", when) for when in (NOON, NOON, LATER)] == [True, True, False]
    assert await store.clients.take_value("v", LATER) is None
    assert await store.clients.take_value("v", NOON) is None


async def test_a_user_has_so_many_values_of_a_kind(store: Store) -> None:
    assert await store.clients.put_value(a_value("a"), NOON, most=2)
    assert await store.clients.put_value(a_value("b"), NOON, most=2)
    assert not await store.clients.put_value(a_value("c"), NOON, most=2)
    assert await store.clients.take_value("c", NOON) is None
    assert await store.clients.put_value(a_value("d", kind="other"), NOON, most=2)
    assert await store.clients.put_value(a_value("e", user="eve"), NOON, most=2)
    expires = LATER + timedelta(minutes=1)
    assert await store.clients.put_value(a_value("f", expires_at=expires), LATER, most=2), "those are old"


async def test_sessions_and_values_go_with_their_user_and_workspace(store: Store) -> None:
    await store.people.put_workspace(Workspace(id="w", name="w", created_at=NOON))
    await store.people.put_user(User(workspace="w", id="ada", name="ada", created_at=NOON))
    for number, user in ((1, "ada"), (2, "bob")):
        await store.clients.open_session(a_session(number, workspace="w", user=user), 5)
        await store.clients.put_value(a_value(user, workspace="w", user=user), NOON)
    await store.people.remove_user("w", "ada")
    assert await store.clients.find_session("s1") is None
    assert await store.clients.find_session("s2")
    assert await store.clients.take_value("ada", NOON) is None
    await store.people.remove_workspace("w")
    assert await store.clients.find_session("s2") is None
    assert await store.clients.take_value("bob", NOON) is None
