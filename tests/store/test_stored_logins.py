"""OAuth clients that registered themselves, what signs tokens, and keys with a client, in any store."""

from dataclasses import replace
from datetime import timedelta

import pytest
from store_values import NOON

from dragoman.people import ApiKey, ConnectedClient, User, Workspace
from dragoman.store import Store
from dragoman.store.records import RegisteredClient, SealedSigningKey

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


def a_client(number: int) -> RegisteredClient:
    made = NOON + timedelta(seconds=number)
    facts = {"client_name": "a", "redirect_uris": ["http://127.0.0.1/"]}
    return RegisteredClient(id=f"c{number}", metadata=facts, created_at=made, expires_at=made + DAY)


async def test_a_registered_client_is_there_until_it_expires_and_longer_once_it_is_used(store: Store) -> None:
    await store.logins.add_client(a_client(1), NOON, 10)
    assert await store.logins.find_client("c1", NOON) == a_client(1)
    assert await store.logins.find_client("c1", NOON + 2 * DAY) is None
    await store.logins.keep_client("c1", NOON + 9 * DAY)
    kept = replace(a_client(1), is_used=True, expires_at=NOON + 9 * DAY)
    assert await store.logins.find_client("c1", NOON + 2 * DAY) == kept
    await store.logins.keep_client("c1", NOON + 3 * DAY)
    assert await store.logins.find_client("c1", NOON) == kept, "it only grows"
    assert await store.logins.find_client("c2", NOON) is None


async def test_of_clients_that_nobody_uses_the_oldest_make_room(store: Store) -> None:
    await store.logins.add_client(a_client(1), NOON, 2)
    await store.logins.keep_client("c1", NOON + 9 * DAY)
    for number in (2, 3, 4):
        await store.logins.add_client(a_client(number), NOON, 2)
    there = [bool(await store.logins.find_client(f"c{number}", NOON)) for number in (1, 2, 3, 4)]
    assert there == [True, False, True, True]


async def test_signing_keys_come_newest_first_and_go_by_age(store: Store) -> None:
    keys = [
        SealedSigningKey(id=f"k{number}", sealed=b"\x00x", created_at=NOON + number * DAY)
        for number in range(3)
    ]
    for key in keys:
        await store.logins.add_signing_key(key)
    assert await store.logins.signing_keys() == keys[::-1]
    await store.logins.forget_signing_keys(NOON + DAY)
    assert await store.logins.signing_keys() == [keys[2], keys[1]]


async def test_a_key_is_found_by_its_id_with_its_client(store: Store) -> None:
    await store.people.put_workspace(Workspace(id="acme", name="Acme", created_at=NOON))
    await store.people.put_user(User(id="ada", workspace="acme", name="Ada", created_at=NOON))
    client = ConnectedClient(id="dcr_1", audience="http://127.0.0.1/mcp", redirect="127.0.0.1:1", host="")
    key = ApiKey(
        id="cli_1",
        workspace="acme",
        user="ada",
        name="a",
        hash="h",
        hint="drr_",
        created_at=NOON,
        client=client,
    )
    await store.people.put_key(key)
    assert await store.people.find_key_by_id("cli_1") == key
    assert await store.people.find_key_by_id("cli_2") is None
