import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from store_values import NOON, a_call, a_connector, a_secret

from dragoman.errors import Conflict
from dragoman.people import ApiKey, Preferences, Thread, User, UserLimits, Workspace
from dragoman.store import Store
from dragoman.store.records import AuthorizationFlow

pytestmark = pytest.mark.anyio

ACME = Workspace(id="acme", name="Acme", limits=UserLimits(calls_per_hour=5), created_at=NOON)
ANN = User(
    id="ann",
    workspace="acme",
    name="Ann",
    role="admin",
    capabilities=frozenset({"mcp_time", "finance"}),
    limits=UserLimits(cost_per_day=1.5),
    preferences=Preferences(connectors=("time",), auto_load=False, limits=UserLimits(tokens_per_day=10)),
    external="https://issuer|1",
    created_at=NOON,
)
KEY = ApiKey(id="k1", workspace="acme", user="ann", name="laptop", hash="h1", hint="drk_", created_at=NOON)


async def test_workspaces_users_and_keys_come_back_as_they_were(store: Store) -> None:
    await store.people.put_workspace(ACME)
    await store.people.put_user(ANN)
    await store.people.put_key(KEY)
    assert await store.people.workspaces() == [ACME]
    assert await store.people.find_workspace("acme") == ACME
    assert await store.people.users("acme") == [ANN]
    assert await store.people.find_external("https://issuer|1") == ANN
    assert await store.people.find_key("h1") == KEY
    assert await store.people.keys("acme", "ann") == [KEY]
    await store.people.used_keys({"k1": NOON})
    assert await store.people.find_key("h1") == replace(KEY, last_used_at=NOON)


async def test_people_of_another_workspace_are_not_found(store: Store) -> None:
    await store.people.put_workspace(ACME)
    await store.people.put_user(ANN)
    await store.people.put_key(KEY)
    assert await store.people.find_user("other", "ann") is None
    assert await store.people.users("other") == []
    assert await store.people.keys("other") == []
    assert await store.people.keys("acme", "bob") == []


async def test_a_name_belongs_to_one_user_of_a_workspace(store: Store) -> None:
    await store.people.put_workspace(ACME)
    await store.people.put_user(ANN)
    with pytest.raises(Conflict):
        await store.people.put_user(replace(ANN, id="other", external=None))
    with pytest.raises(Conflict):
        await store.people.put_user(replace(ANN, id="other", name="Other"))
    await store.people.put_user(replace(ANN, role="member", revision=1))


async def test_of_ten_that_want_one_name_at_once_one_gets_it(store: Store) -> None:
    await store.people.put_workspace(ACME)
    tries = [store.people.put_user(User(id=f"u{n}", workspace="acme", name="Ann")) for n in range(10)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(outcome is None for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 9


async def test_a_removed_user_takes_all_along_and_leaves_the_others_alone(store: Store) -> None:
    await store.people.put_workspace(ACME)
    for user in ("ann", "bob"):
        await store.people.put_user(User(id=user, workspace="acme", name=user))
        await store.people.put_key(replace(KEY, id=user, user=user, hash=user))
        await store.threads.put(Thread(id="t", workspace="acme", user=user))
    shared = a_connector(workspace="acme", owner="")
    await store.connectors.add(shared, [a_secret(workspace="acme")])
    for user in ("ann", "bob"):
        secret = a_secret("auth", workspace="acme", user=user)
        await store.connectors.put_secrets(shared, ("acme", user), [secret])
    await store.calls.add([a_call("c1", workspace="acme", user="ann")])
    await store.people.remove_user("acme", "ann")
    assert [user.id for user in await store.people.users("acme")] == ["bob"]
    assert await store.people.find_key("ann") is None
    assert await store.threads.find("acme", "ann", "t") is None
    assert len(await store.connectors.secrets(shared, "acme", "ann")) == 1
    assert len(await store.connectors.secrets(shared, "acme", "bob")) == 2
    assert await store.threads.find("acme", "bob", "t") is not None
    assert await store.people.find_key("bob") is not None


async def test_a_removed_workspace_takes_all_along_and_no_other(store: Store) -> None:
    for workspace in ("acme", "other"):
        await store.people.put_workspace(replace(ACME, id=workspace))
        await store.people.put_user(User(id="u", workspace=workspace, name="u"))
        await store.connectors.add(a_connector(id=f"c-{workspace}", workspace=workspace, owner="u"), [])
        await store.threads.put(Thread(id="t", workspace=workspace, user="u"))
    await store.people.remove_workspace("acme")
    assert [one.id for one in await store.people.workspaces()] == ["other"]
    assert await store.connectors.list("acme") == []
    assert await store.threads.find("acme", "u", "t") is None
    assert len(await store.connectors.list("other")) == 1
    assert await store.threads.find("other", "u", "t") is not None


async def test_a_secret_of_a_user_of_another_workspace_is_never_given_out(store: Store) -> None:
    app = a_connector(workspace="", owner="")
    await store.connectors.add(app, [a_secret(workspace="")])
    await store.connectors.put_secrets(app, ("acme", "ann"), [a_secret("auth", workspace="acme", user="ann")])
    assert [one.name for one in await store.connectors.secrets(app, "acme", "ann")] == ["env:TOKEN", "auth"]
    assert [one.name for one in await store.connectors.secrets(app, "other", "ann")] == ["env:TOKEN"]
    assert await store.connectors.secret_names("acme", "ann") == {app.id: frozenset({"auth"})}
    assert await store.connectors.secret_names("other", "ann") == {}


async def test_threads_belong_to_one_user(store: Store) -> None:
    thread = Thread(
        id="t", workspace="acme", user="ann", connectors=("time",), created_at=NOON, updated_at=NOON
    )
    await store.threads.put(thread)
    assert await store.threads.find("acme", "ann", "t") == thread
    assert await store.threads.find("acme", "bob", "t") is None
    assert await store.threads.find("other", "ann", "t") is None
    await store.threads.remove("acme", "bob", "t")
    assert await store.threads.list("acme", "ann") == [thread]


async def test_a_flow_is_taken_once_and_only_in_time(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    flow = AuthorizationFlow(
        state_hash="s",
        workspace="local",
        user="owner",
        connector_id="con_time",
        sealed=b"x",
        expires_at=NOON.replace(year=2100),
    )
    await store.connectors.put_flow(flow)
    assert await store.connectors.take_flow("other", NOON) is None
    taken = await asyncio.gather(*(store.connectors.take_flow("s", NOON) for _ in range(5)))
    assert sorted(one is not None for one in taken) == [False] * 4 + [True]
    await store.connectors.put_flow(flow)
    assert await store.connectors.take_flow("s", flow.expires_at + timedelta(seconds=1)) is None
