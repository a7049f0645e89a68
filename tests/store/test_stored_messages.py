import asyncio
from dataclasses import replace

import pytest
from run_values import a_message
from store_values import NOON

from dragoman.store import Store, open_store

pytestmark = pytest.mark.anyio


async def test_a_message_comes_back_as_it_was_with_its_number(store: Store) -> None:
    message = a_message(
        "Noon. \U0001f55b", author="agent", agent="assistant", run="run_1", details={"cost": 1}
    )
    assert await store.threads.add_message(message) == replace(message, number=1)
    assert await store.threads.messages("local", "owner", "t1") == [replace(message, number=1)]


async def test_what_no_database_can_keep_of_a_text_is_replaced(store: Store) -> None:
    await store.threads.add_message(a_message("a\x00b"))
    assert [found.text for found in await store.threads.messages("local", "owner", "t1")] == ["a\ufffdb"]


async def test_messages_are_numbered_within_their_thread(store: Store) -> None:
    places = [{}, {"thread": "t2"}, {"user": "bob"}, {"workspace": "other"}, {}]
    numbers = [(await store.threads.add_message(a_message(**place))).number for place in places]
    assert numbers == [1, 1, 1, 1, 2]


async def test_the_first_the_next_and_the_last_messages_are_listed_in_order(store: Store) -> None:
    for number in range(1, 6):
        await store.threads.add_message(a_message(str(number)))

    async def texts(after: int = 0, limit: int = 9, last: bool = False) -> str:
        found = await store.threads.messages("local", "owner", "t1", after=after, limit=limit, last=last)
        return "".join(message.text for message in found)

    assert await texts() == "12345"
    assert await texts(limit=2) == "12"
    assert await texts(after=2, limit=2) == "34"
    assert await texts(limit=2, last=True) == "45"
    assert await texts(after=4, limit=2, last=True) == "5"


async def test_messages_of_another_workspace_or_user_are_not_found(store: Store) -> None:
    await store.threads.add_message(a_message())
    assert await store.threads.messages("other", "owner", "t1") == []
    assert await store.threads.messages("local", "bob", "t1") == []
    assert not await store.threads.note("other", "owner", "t1", 1, {"thumb": 1})
    assert not await store.threads.note("local", "bob", "t1", 1, {"thumb": 1})


async def test_notes_are_merged_into_the_details_of_a_message(store: Store) -> None:
    await store.threads.add_message(a_message(details={"status": "done", "thumb": 0}))
    assert await store.threads.note("local", "owner", "t1", 1, {"thumb": 1, "cost": 0.5})
    assert not await store.threads.note("local", "owner", "t1", 2, {"thumb": 1})
    (found,) = await store.threads.messages("local", "owner", "t1")
    assert found.details == {"status": "done", "thumb": 1, "cost": 0.5}


async def test_two_processes_that_add_at_once_get_different_numbers(store: Store, database_url: str) -> None:
    async with open_store(database_url) as other:
        added = await asyncio.gather(*(one.threads.add_message(a_message()) for one in [store, other] * 10))
    assert sorted(message.number for message in added) == list(range(1, 21))
    assert {message.created_at for message in await store.threads.messages("local", "owner", "t1")} == {NOON}
