import asyncio
from dataclasses import replace

import pytest
from store_values import NOON, NOON_IN_ROME, a_call, a_connector, a_result, a_secret, a_tool, a_version

from dragoman.connector import Configuration, RetryPolicy
from dragoman.errors import Conflict, NotFound
from dragoman.store import Store
from dragoman.telemetry.metrics import ConnectorCounters

pytestmark = pytest.mark.anyio


async def test_a_connector_comes_back_as_it_went_in(store: Store) -> None:
    connector = a_connector(
        description="tells the time",
        aliases=("clock", "time_mcp"),
        enabled=False,
        revision=7,
        era="2026",
        instructions="ask for a zone",
        server={"name": "time", "version": "1"},
        configuration=Configuration(
            url="https://time.example/mcp", headers={"X-A": "b"}, retry=RetryPolicy(tries=1), pin="block"
        ),
        created_at=NOON_IN_ROME,
    )
    await store.connectors.add(connector, [])
    (found,) = await store.connectors.list("local")
    assert found == connector
    assert found.created_at == NOON
    assert found.created_at.utcoffset() is not None


async def test_connectors_are_listed_by_slug_whatever_the_database_thinks_of_hyphens(store: Store) -> None:
    for slug in ("ab", "a-c", "a1", "b"):
        await store.connectors.add(a_connector(slug), [])
    assert [found.slug for found in await store.connectors.list("local")] == ["a-c", "a1", "ab", "b"]


async def test_the_same_slug_in_two_workspaces_is_fine_and_they_never_meet(store: Store) -> None:
    here, there = a_connector(id="here"), a_connector(id="there", workspace="other")
    await store.connectors.add(here, [a_secret(connector_id="here")])
    await store.connectors.add(there, [a_secret(connector_id="there", workspace="other")])
    assert await store.connectors.list("local") == [here]
    assert await store.connectors.list("other") == [there]
    assert await store.connectors.list() == [here, there]
    assert await store.connectors.secrets(a_connector(id="here", workspace="other"), "other", "") == []
    await store.connectors.remove("other", "here")
    with pytest.raises(NotFound):
        await store.connectors.update(replace(here, workspace="other", slug="stolen"))
    bare = a_connector("bare")
    await store.connectors.add(bare, [])
    with pytest.raises(NotFound):
        await store.connectors.update(replace(bare, workspace="other"))
    assert await store.connectors.list("local") == [bare, here]
    assert len(await store.connectors.secrets(a_connector(id="here"), "local", "")) == 1


async def test_a_row_cannot_refer_to_a_connector_of_another_workspace(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    with pytest.raises(NotFound):
        await store.connectors.save_tools([a_tool(workspace="other")], [], [])


@pytest.mark.parametrize(
    ("slug", "aliases"),
    [("time", ()), ("clock", ()), ("new", ("time",)), ("new", ("fresh", "clock"))],
)
async def test_a_name_that_is_a_slug_or_alias_already_is_a_conflict(
    store: Store, slug: str, aliases: tuple[str, ...]
) -> None:
    await store.connectors.add(a_connector(aliases=("clock",)), [])
    with pytest.raises(Conflict, match="taken by the connector 'time'") as caught:
        await store.connectors.add(a_connector(slug, id="con_new", aliases=aliases), [])
    assert caught.value.hint
    await store.connectors.add(a_connector("free", id="con_free"), [])
    with pytest.raises(Conflict):
        await store.connectors.update(a_connector(slug, id="con_free", aliases=aliases))
    assert [found.slug for found in await store.connectors.list()] == ["free", "time"]


async def test_a_conflict_writes_no_secret(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    with pytest.raises(Conflict):
        await store.connectors.add(a_connector(id="second"), [a_secret(connector_id="second")])
    assert await store.connectors.secrets(a_connector(id="second"), "local", "") == []


async def test_the_same_id_twice_is_a_conflict(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    with pytest.raises(Conflict):
        await store.connectors.add(a_connector("other", id="con_time"), [])


async def test_of_twenty_that_want_one_alias_at_once_one_gets_it(store: Store) -> None:
    tries = [store.connectors.add(a_connector(f"s{n}", aliases=("wanted",)), []) for n in range(20)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(outcome is None for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19
    assert len(await store.connectors.list()) == 1


async def test_an_update_replaces_the_row_and_keeps_secrets_when_none_are_given(store: Store) -> None:
    await store.connectors.add(a_connector(), [a_secret()])
    changed = a_connector(revision=2, description="new", aliases=("clock",))
    await store.connectors.update(changed)
    assert await store.connectors.list() == [changed]
    assert await store.connectors.secrets(a_connector(), "local", "") == [a_secret()]


async def test_an_update_replaces_all_shared_secrets_and_no_user_s_own(store: Store) -> None:
    mine = a_secret("auth", user="ann")
    await store.connectors.add(a_connector(), [a_secret("env:A"), a_secret("env:B"), mine])
    await store.connectors.update(a_connector(revision=2), [a_secret("env:C")])
    assert await store.connectors.secrets(a_connector(), "local", "ann") == [a_secret("env:C"), mine]
    await store.connectors.update(a_connector(revision=3), [])
    assert await store.connectors.secrets(a_connector(), "local", "ann") == [mine]


async def test_a_user_s_secret_is_not_kept_for_where_a_connector_leads_since(store: Store) -> None:
    """Twenty users give theirs while the connector is pointed elsewhere: each is deleted, or refused."""
    before = a_connector()
    after = replace(before, configuration=Configuration(command="sh"), revision=2)
    await store.connectors.add(before, [a_secret()])

    async def give(user: str) -> bool:
        try:
            await store.connectors.put_secrets(before, ("local", user), [a_secret(user=user)])
        except Conflict:
            return False
        return True

    users = [f"user-{number}" for number in range(20)]
    update = store.connectors.update(after, [a_secret()], forget_personal=True)
    await asyncio.gather(*map(give, users[:10]), update, *map(give, users[10:]))
    assert not await give("late")
    for user in (*users, "late"):
        assert [one.user for one in await store.connectors.secrets(after, "local", user)] == [""], user
    await store.connectors.put_secrets(after, ("local", "ann"), [a_secret(user="ann")])
    await store.connectors.put_secrets(before, ("local", "ann"), [], ["env:TOKEN"])  # taking away, always


async def test_an_update_of_a_connector_that_is_gone_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.connectors.update(a_connector(), [a_secret()])
    assert await store.connectors.secrets(a_connector(), "local", "") == []


async def test_a_user_gets_the_shared_secrets_and_their_own_only(store: Store) -> None:
    shared, ann, bob = a_secret(), a_secret(user="ann"), a_secret(user="bob")
    await store.connectors.add(a_connector(), [bob, ann, shared])
    assert await store.connectors.secrets(a_connector(), "local", "ann") == [shared, ann]
    assert await store.connectors.secrets(a_connector(), "local", "") == [shared]


async def test_a_secret_sealed_for_another_connector_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="another connector"):
        await store.connectors.add(a_connector(), [a_secret(connector_id="con_mail")])
    assert await store.connectors.list() == []


async def test_the_ids_of_all_keys_in_use_are_known(store: Store) -> None:
    assert await store.connectors.key_ids() == frozenset()
    await store.connectors.add(a_connector(), [a_secret("a", key_id="one"), a_secret("b", key_id="two")])
    assert await store.connectors.key_ids() == {"one", "two"}


async def test_removing_a_connector_takes_all_along_but_the_record_of_its_calls(store: Store) -> None:
    tool = a_tool()
    await store.connectors.add(a_connector(), [a_secret()])
    await store.connectors.add(a_connector("mail"), [])
    await store.connectors.save_tools([tool], [a_version(tool)], [])
    counters = ConnectorCounters("local", "mail")
    await store.connectors.add_metrics({"con_time": counters, "con_mail": counters})
    await store.calls.add([a_call()])
    await store.calls.keep_result(a_result())
    await store.connectors.remove("local", "con_time")
    assert [found.slug for found in await store.connectors.list()] == ["mail"]
    assert await store.connectors.tools() == []
    assert await store.connectors.versions(tool) == []
    assert await store.connectors.secrets(a_connector(), "local", "") == []
    assert (await store.connectors.metrics()).keys() == {"con_mail"}
    assert len(await store.calls.recent("local", "owner")) == 1
    assert await store.calls.find_result("local", "owner", "res_1")
    await store.connectors.remove("local", "con_time")  # gone already: nothing to do
