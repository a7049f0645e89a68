"""API keys and who may manage whom, through the hub, on both databases."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.errors import Conflict, Denied, InvalidArguments, InvalidConfig, NotFound, Unauthenticated
from dragoman.identity.keys import hash_of, make_key
from dragoman.people import ApiKey, User, UserLimits
from dragoman.scope import LOCAL_CALLER
from dragoman.store import open_store
from patience import give_time, patient
from servers.hubs import QUICK, open_hub, until
from servers.processes import stdio

pytestmark = pytest.mark.anyio


async def joined(hub: Hub, name: str, workspace: str | None = None, **facts: Any) -> tuple[User, str]:
    """A user with a key that may do all that they may."""
    user = await hub.people.add_user(name, workspace=workspace, **facts)
    scopes = ("read", "call", "manage", "approve", "admin")
    _, key = await hub.people.add_key("all", user=user.id, scopes=scopes, workspace=workspace)
    return user, key


async def caller_of(hub: Hub, key: str) -> Caller:
    return (await hub.authenticator.admit(key)).caller


async def refused(hub: Hub, key: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        await hub.authenticator.admit(key)
    return f"{caught.value.message} {caught.value.hint}"


async def test_a_key_opens_for_its_user_with_its_scopes_and_no_more(
    tmp_path: Path, database_url: str
) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        acme = await hub.people.add_workspace("acme")
        ada, everything = await joined(hub, "ada", acme.id, role="admin")
        admission = await hub.authenticator.admit(everything)
        assert replace(admission.caller, key=None) == Caller(acme.id, ada.id, role="admin", manages=True)
        assert admission.caller.key is not None
        record, small = await hub.people.add_key("small", user="ada", workspace="acme", way="agent")
        assert small.startswith("drk_")
        assert (record.hint, record.hash) == (small[:8], hash_of(small))
        assert small not in repr(record)
        assert record.hash not in repr(record)
        admission = await hub.authenticator.admit(small)
        assert admission.scopes == {"read", "call"}
        assert (admission.caller.role, admission.caller.way) == ("member", "agent")
        bob, key = await joined(hub, "bob", "acme", capabilities=["mcp_email"])
        assert (await hub.authenticator.admit(key)).scopes == {"read", "call", "manage", "approve"}
        _, narrow = await hub.people.add_key(
            "narrow", user=bob.id, capabilities=["mcp_email_send"], workspace="acme"
        )
        caller = await caller_of(hub, narrow)
        assert caller.grants == (frozenset({"mcp_email"}), frozenset({"mcp_email_send"}))
        assert caller.may_use("email", "mcp_email_send")
        assert not caller.may_use("email", "mcp_email_list")


async def test_whatever_is_wrong_with_a_key_it_is_refused_in_the_same_words(
    tmp_path: Path, database_url: str
) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        ada, key = await joined(hub, "ada")
        over = datetime.now(UTC) - timedelta(seconds=1)
        words = {await refused(hub, wrong) for wrong in ("", "drk_", "garbage", "drg_x", make_key(), "a.b.c")}
        for change in ({"expires_at": over}, {"revoked_at": over}):
            plain = make_key()
            facts: Any = {"id": plain[:12], "hash": hash_of(plain), "hint": plain[:8], **change}
            async with open_store(hub.settings.store_url) as store:
                await store.people.put_key(ApiKey(workspace="local", user=ada.id, name="x", **facts))
            words.add(await refused(hub, plain))
        assert await caller_of(hub, key)
        await hub.people.update_user(ada.id, is_active=False)
        words.add(await refused(hub, key))
        await hub.people.update_user(ada.id, is_active=True)
        assert await caller_of(hub, key)
        await hub.people.remove_user(ada.id)
        words.add(await refused(hub, key))
        assert len(words) == 1
        assert "hub.people.add_key" in words.pop()


async def test_a_key_ends_on_the_second_though_it_is_remembered(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        _, key = await hub.people.add_key("short", expires_in=timedelta(seconds=patient(0.3)))
        assert await caller_of(hub, key)
        await give_time(0.3)
        await refused(hub, key)


async def test_revoking_is_effective_at_once_here_and_soon_in_another_process(
    tmp_path: Path, postgres_url: str
) -> None:
    async with (
        open_hub(tmp_path / "one", database_url=postgres_url) as one,
        open_hub(tmp_path / "two", database_url=postgres_url) as two,
    ):
        record, key = await one.people.add_key("shared")
        ada, hers = await joined(one, "ada")
        for hub in (one, two):
            assert await caller_of(hub, key)
            assert await caller_of(hub, hers)
        await one.people.revoke_key(record.id)
        await one.people.update_user(ada.id, is_active=False)
        await refused(one, key)
        await refused(one, hers)

        async def is_refused(wrong: str) -> bool:
            try:
                await two.authenticator.admit(wrong)
            except Unauthenticated:
                return True
            return False

        await until(lambda: is_refused(key), within=3)
        await until(lambda: is_refused(hers), within=3)


async def test_the_last_use_of_a_key_is_written_off_the_requests_path(
    tmp_path: Path, database_url: str
) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        record, key = await hub.people.add_key("used")
        for _ in range(50):
            await caller_of(hub, key)
        assert (await hub.people.keys())[0].last_used_at is None
        await hub.authenticator.flush()
        written = (await hub.people.keys())[0]
        assert written.id == record.id
        assert written.last_used_at is not None
        await caller_of(hub, key)
        await hub.authenticator.flush()
        assert (await hub.people.keys())[0].last_used_at == written.last_used_at


async def test_a_key_makes_no_greater_key(tmp_path: Path, database_url: str) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        people = hub.people
        ada, _ = await joined(hub, "ada", role="admin", capabilities=["mcp_integration"])
        _, small = await people.add_key(
            "small", user=ada.id, scopes=["read", "manage"], capabilities=["mcp_email"]
        )
        caller, within = (
            (await hub.authenticator.admit(small)).caller,
            (await hub.authenticator.admit(small)).scopes,
        )
        for scope in ("admin", "call", "approve"):
            with pytest.raises(Denied, match="scope"):
                await hub.acting_for(caller).people.add_key("more", scopes=["read", scope], within=within)
        for word in ("mcp_integration", "mcp_bank", "mcp_bank_pay", "finance", "*"):
            with pytest.raises(Denied, match="may not use"):
                await hub.acting_for(caller).people.add_key(
                    "more", scopes=["read"], capabilities=[word], within=within
                )
        same, _ = await hub.acting_for(caller).people.add_key("same", scopes=["read"], within=within)
        assert same.capabilities == {"mcp_email"}
        less, _ = await hub.acting_for(caller).people.add_key(
            "less", scopes=["read"], capabilities=["mcp_email_list"], within=within
        )
        assert less.capabilities == {"mcp_email_list"}
        with pytest.raises(NotFound):
            await hub.acting_for(caller).people.add_key("owner", user="owner", scopes=["read"], within=within)
        agent = replace(caller, way="agent")
        with pytest.raises(Denied, match="makes none"):
            await hub.acting_for(agent).people.add_key("direct", scopes=["read"], within=within)
        for scope in ("approve", "manage", "admin"):
            with pytest.raises(Denied, match="acts for a model"):
                await people.add_key("model", scopes=["read", scope], way="mcp")


async def test_members_have_their_own_keys_only(tmp_path: Path, database_url: str) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        people = hub.people
        ada, hers = await joined(hub, "ada")
        bob, his = await joined(hub, "bob")
        caller = await caller_of(hub, hers)
        assert caller.role == "member"
        assert [key.user for key in await hub.acting_for(caller).people.keys()] == [ada.id]
        made, _ = await hub.acting_for(caller).people.add_key("mine")
        assert made.user == ada.id
        theirs = (await people.keys(bob.id))[0]
        for forbidden in (
            hub.acting_for(caller).people.keys(bob.id),
            hub.acting_for(caller).people.add_key("x", user="bob"),
            hub.acting_for(caller).people.revoke_key(theirs.id),
            hub.acting_for(caller).people.get_user(bob.id),
            hub.acting_for(caller).people.update_user(bob.id, role="admin"),
            hub.acting_for(caller).people.remove_user(bob.id),
        ):
            with pytest.raises(NotFound):
                await forbidden
        for forbidden in (
            hub.acting_for(caller).people.users(),
            hub.acting_for(caller).people.workspaces(),
            hub.acting_for(caller).people.add_user("eve"),
            hub.acting_for(caller).people.add_workspace("x"),
            hub.acting_for(caller).people.update_user(ada.id, role="admin"),
            hub.acting_for(caller).people.update_workspace("local", approval="never"),
            hub.acting_for(caller).people.remove_workspace("local"),
        ):
            with pytest.raises(Denied):
                await forbidden
        assert (await hub.acting_for(caller).people.get_user(ada.id)).name == "ada"
        assert (await hub.acting_for(caller).people.revoke_key(made.id)).revoked_at
        assert await caller_of(hub, his)


async def test_an_admin_rules_their_workspace_and_sees_no_other(tmp_path: Path, database_url: str) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        people = hub.people
        acme, other = await people.add_workspace("acme"), await people.add_workspace("other")
        _, key = await joined(hub, "ada", acme.id, role="admin")
        eve, eves = await joined(hub, "eve", other.id)
        caller = await caller_of(hub, key)
        assert [one.id for one in await hub.acting_for(caller).people.workspaces()] == [acme.id]
        limits = UserLimits(calls_per_hour=5)
        changed = await hub.acting_for(caller).people.update_workspace(
            acme.id, approval="always", limits=limits
        )
        assert (changed.approval, changed.limits) == ("always", limits)
        bob = await hub.acting_for(caller).people.add_user("bob")
        assert bob.workspace == acme.id
        assert (await hub.acting_for(caller).people.add_key("his", user="bob"))[0].user == bob.id
        theirs = (await people.keys(workspace=other.id))[0]
        for foreign in (
            hub.acting_for(caller).people.get_workspace(other.id),
            hub.acting_for(caller).people.get_workspace("other"),
            hub.acting_for(caller).people.update_workspace(other.id, approval="never"),
            hub.acting_for(caller).people.users(other.id),
            hub.acting_for(caller).people.get_user(eve.id),
            hub.acting_for(caller).people.get_user(eve.id, other.id),
            hub.acting_for(caller).people.add_user("x", workspace=other.id),
            hub.acting_for(caller).people.update_user(eve.id, is_active=False),
            hub.acting_for(caller).people.remove_user("eve", "other"),
            hub.acting_for(caller).people.keys(workspace=other.id),
            hub.acting_for(caller).people.add_key("x", user=eve.id, workspace=other.id),
            hub.acting_for(caller).people.revoke_key(theirs.id),
            hub.acting_for(caller).people.revoke_key(theirs.id, other.id),
        ):
            with pytest.raises(NotFound):
                await foreign
        for operators in (
            hub.acting_for(caller).people.add_workspace("x"),
            hub.acting_for(caller).people.remove_workspace(acme.id),
            hub.acting_for(caller).people.update_workspace(acme.id, name="new"),
        ):
            with pytest.raises(Denied):
                await operators
        assert await caller_of(hub, eves)
        trail = [entry.action for entry in await hub.audit.list(workspace=acme.id)][::-1]
        assert trail == ["user.added", "key.added", "workspace.updated", "user.added", "key.added"]


async def test_a_workspace_keeps_its_last_admin(tmp_path: Path, database_url: str) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        people = hub.people
        acme = await people.add_workspace("acme")
        ada, key = await joined(hub, "ada", acme.id, role="admin")
        caller = await caller_of(hub, key)
        for lost in (
            hub.acting_for(caller).people.remove_user(ada.id),
            hub.acting_for(caller).people.update_user(ada.id, role="member"),
            hub.acting_for(caller).people.update_user(ada.id, is_active=False),
        ):
            with pytest.raises(Conflict, match="last admin") as caught:
                await lost
            assert caught.value.hint
        await hub.acting_for(caller).people.add_user("bob", role="admin")
        assert (await hub.acting_for(caller).people.update_user(ada.id, role="member")).role == "member"
        assert (await caller_of(hub, key)).role == "member"
        await hub.acting_for(LOCAL_CALLER).people.remove_user("bob", acme.id)
        for local in (
            people.remove_workspace("local"),
            people.remove_user("owner"),
            people.update_user("owner", is_active=False),
        ):
            with pytest.raises(Conflict, match="local"):
                await local


async def test_a_removed_user_lets_calls_under_way_finish_and_takes_all_along(
    tmp_path: Path, database_url: str
) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        ada, key = await joined(hub, "ada", role="admin")
        caller = await caller_of(hub, key)
        await hub.acting_for(caller).connectors.add("own", **QUICK, **stdio())
        await hub.connectors.add("team", shared=True, **QUICK, **stdio())
        gate = tmp_path / "gate"
        async with asyncio.TaskGroup() as tasks:
            calls = [
                tasks.create_task(
                    hub.acting_for(caller).call(f"mcp_{slug}_sleep", {"seconds": 60, "gate": str(gate)})
                )
                for slug in ("own", "team")
            ]
            await until(lambda: sum(link.in_flight for link in hub.links()) == 2)
            await hub.people.remove_user("ada")
            await refused(hub, key)
            assert not any(call.done() for call in calls)
            gate.write_text("x")
        assert [call.result().ok for call in calls] == [True, True]
        await until(lambda: not any(ada.id in link.identity for link in hub.links()))
        async with open_store(hub.settings.store_url) as store:
            assert [one.slug for one in await store.connectors.list()] == ["team"]
            assert await store.people.keys("local", ada.id) == []
        assert (await hub.acting_for(caller).call("mcp_own_echo", {"text": "x"})).ok is False


async def test_a_removed_workspace_is_gone_with_its_users_and_connectors(
    tmp_path: Path, database_url: str
) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        acme = await hub.people.add_workspace("acme")
        _, key = await joined(hub, "ada", acme.id, role="admin")
        caller = await caller_of(hub, key)
        for shared in (True, False):
            await hub.acting_for(caller).connectors.add(f"c{int(shared)}", shared=shared, **QUICK, **stdio())
        await hub.people.remove_workspace("acme")
        await refused(hub, key)
        assert hub.links() == []
        async with open_store(hub.settings.store_url) as store:
            assert await store.connectors.list() == []
        with pytest.raises(NotFound):
            await hub.people.users(acme.id)
        assert [one.id for one in await hub.people.workspaces()] == ["local"]


async def test_wrong_values_are_refused_with_what_would_do(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        people = hub.people
        wrong: Any = "emperor"
        for refusal in (
            people.add_user("x", role=wrong),
            people.add_user("x", capabilities=["", "a"]),
            people.add_user("x", limits=UserLimits(calls_per_hour=-1)),
            people.update_workspace("local", approval=wrong),
            people.add_key("x", scopes=[wrong]),
            people.add_key("x", scopes=[]),
            people.add_key("x", way=wrong),
            people.add_key("x", expires_in=timedelta()),
            people.add_key("x", expires_in=timedelta(days=100_000)),
        ):
            with pytest.raises(InvalidArguments) as caught:
                await refusal
            assert caught.value.hint
        for taken in (people.add_user("owner"), people.add_workspace("local")):
            with pytest.raises(Conflict):
                await taken


async def test_half_an_issuer_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="audience"):
        async with open_hub(tmp_path, multi_user=True, oidc_issuer="https://issuer.test"):
            pass
    async with open_hub(tmp_path, oidc_issuer="https://issuer.test") as hub:
        assert hub.authenticator._tokens is None
