from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from dragoman.connector import Configuration, Connector
from dragoman.errors import KeyFault
from dragoman.store import SealedSecret, Store, open_store
from dragoman.store.protocols import ConnectorStore
from dragoman.vault import Key, KeyRing, Vault
from dragoman.vault.vault import bound_to

pytestmark = pytest.mark.anyio

KEY, OTHER_KEY = Key(b"k" * 32), Key(b"o" * 32)
CONNECTOR = Connector(
    id="con_1", workspace="local", owner="owner", slug="mail", configuration=Configuration(command="mail")
)


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[Store]:
    async with open_store(database_url) as opened:
        yield opened


def sealed_by(vault: Vault, name: str, value: str, user: str = "") -> SealedSecret:
    return vault.seal(CONNECTOR.workspace, user, CONNECTOR.id, name, SecretStr(value))


async def test_a_user_sees_the_shared_secrets_and_their_own_in_their_place(store: Store) -> None:
    vault = Vault(store.connectors, KeyRing(KEY))
    secrets = [
        sealed_by(vault, "auth", "shared"),
        sealed_by(vault, "env:A", "a"),
        sealed_by(vault, "auth", "of ann", user="ann"),
        sealed_by(vault, "auth", "of bob", user="bob"),
    ]
    await store.connectors.add(CONNECTOR, secrets)
    assert await vault.reveal(CONNECTOR, "local", "ann") == {
        "auth": SecretStr("of ann"),
        "env:A": SecretStr("a"),
    }
    assert await vault.reveal(CONNECTOR, "local", "eve") == {
        "auth": SecretStr("shared"),
        "env:A": SecretStr("a"),
    }
    assert await vault.reveal(replace(CONNECTOR, workspace="other"), "other", "ann") == {}
    assert "of ann" not in repr(await vault.reveal(CONNECTOR, "local", "ann"))


@given(value=st.text(), name=st.text())
def test_every_text_comes_back_as_it_went_in(value: str, name: str) -> None:
    vault = a_vault()
    assert vault.open(sealed_by(vault, name, value)).get_secret_value() == value


def test_half_a_surrogate_comes_back_too() -> None:
    vault = a_vault()
    assert vault.open(sealed_by(vault, "env:A", "a\ud800b")).get_secret_value() == "a\ud800b"


@given(st.lists(st.text(), min_size=4, max_size=4), st.lists(st.text(), min_size=4, max_size=4))
def test_no_two_places_are_bound_by_the_same_bytes(one: list[str], two: list[str]) -> None:
    assert (bound_to(*one) == bound_to(*two)) == (one == two)


@given(st.text(), st.text(), st.integers(0, 5))
def test_moving_the_border_between_two_parts_changes_the_bytes(one: str, two: str, by: int) -> None:
    whole = one + two
    moved = (whole[:by], whole[by:])
    assert (bound_to(one, two, "", "") == bound_to(*moved, "", "")) == ((one, two) == moved)


@pytest.mark.parametrize(
    "place", [{"workspace": "other"}, {"user": "ann"}, {"connector_id": "con_2"}, {"name": "env:B"}]
)
def test_a_sealed_value_moved_to_another_place_does_not_open(place: dict[str, str]) -> None:
    vault = a_vault()
    moved = replace(sealed_by(vault, "env:A", "canary"), **place)
    with pytest.raises(KeyFault, match="changed or moved") as caught:
        vault.open(moved)
    assert "canary" not in f"{caught.value} {caught.value.hint}"


async def test_rows_swapped_in_the_database_do_not_open(store: Store) -> None:
    vault = Vault(store.connectors, KeyRing(KEY))
    a, b = sealed_by(vault, "env:A", "one"), sealed_by(vault, "env:B", "two")
    swapped = [
        replace(a, nonce=b.nonce, ciphertext=b.ciphertext),
        replace(b, nonce=a.nonce, ciphertext=a.ciphertext),
    ]
    await store.connectors.add(CONNECTOR, swapped)
    with pytest.raises(KeyFault):
        await vault.reveal(CONNECTOR, "local", "ann")


@pytest.mark.parametrize("part", ["nonce", "ciphertext"])
def test_a_changed_or_cut_value_does_not_open(part: str) -> None:
    vault = a_vault()
    sealed = sealed_by(vault, "env:A", "canary")
    found = getattr(sealed, part)
    for broken in (bytes([found[0] ^ 1]) + found[1:], found[:3], b""):
        with pytest.raises(KeyFault):
            vault.open(replace(sealed, **{part: broken}))


def test_the_same_value_sealed_twice_looks_different() -> None:
    vault = a_vault()
    one, two = sealed_by(vault, "env:A", "same"), sealed_by(vault, "env:A", "same")
    assert one.nonce != two.nonce
    assert one.ciphertext != two.ciphertext


async def test_a_database_sealed_with_another_key_is_noticed_at_start(store: Store) -> None:
    right, wrong = Vault(store.connectors, KeyRing(KEY)), Vault(store.connectors, KeyRing(OTHER_KEY))
    await wrong.check()  # nothing sealed yet
    await store.connectors.add(CONNECTOR, [sealed_by(right, "env:A", "canary")])
    await right.check()
    with pytest.raises(KeyFault, match=f"{KEY.id}, not {OTHER_KEY.id}") as caught:
        await wrong.check()
    assert "bring back the key" in (caught.value.hint or "")
    with pytest.raises(KeyFault, match="another master key"):
        await wrong.reveal(CONNECTOR, "local", "ann")
    assert (await right.reveal(CONNECTOR, "local", "ann"))["env:A"].get_secret_value() == "canary"


async def test_an_older_key_on_the_ring_still_opens(store: Store) -> None:
    old = Vault(store.connectors, KeyRing(OTHER_KEY))
    await store.connectors.add(CONNECTOR, [sealed_by(old, "env:A", "canary")])
    vault = Vault(store.connectors, KeyRing(KEY, (OTHER_KEY,)))
    await vault.check()
    assert (await vault.reveal(CONNECTOR))["env:A"].get_secret_value() == "canary"
    assert sealed_by(vault, "env:A", "x").key_id == KEY.id


async def test_a_secret_is_nowhere_in_the_files_of_the_database(sqlite_url: str, tmp_path: Path) -> None:
    async with open_store(sqlite_url) as store:
        vault = Vault(store.connectors, KeyRing(KEY))
        described = replace(CONNECTOR, description="plain-canary")
        await store.connectors.add(described, [sealed_by(vault, "env:A", "sealed-canary")])
        raw = b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir())
        assert b"plain-canary" in raw
        assert b"sealed-canary" not in raw
        assert KEY.material not in raw


def test_no_repr_shows_a_secret_or_a_key() -> None:
    vault = Vault(no_rows(), KeyRing(Key(b"canary" * 5 + b"ca")))
    sealed = sealed_by(vault, "env:A", "canary")
    assert "canary" not in f"{vault!r} {vars(vault)!r} {sealed!r} {vault.open(sealed)!r} {vault.open(sealed)}"


def a_vault() -> Vault:
    return Vault(no_rows(), KeyRing(KEY))


def no_rows() -> ConnectorStore:
    """For what asks no store: sealing and opening."""
    return cast("ConnectorStore", object())
