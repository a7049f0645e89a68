"""Groups of the issuer: who is let in by them, with which rights, and that each token decides anew."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from issuer_server import AUDIENCE, IssuerServer, Key, open_issuer

from dragoman import Hub
from dragoman.background_tasks import Supervisor
from dragoman.errors import Denied, InvalidConfig, Unauthenticated
from dragoman.hub.people import issuer_of
from dragoman.identity.authenticator import Authenticator, open_authenticator
from dragoman.identity.directory import Directory, make_local
from dragoman.identity.groups import group_table
from dragoman.identity.issuer import Issuer
from dragoman.people import User, Workspace
from dragoman.settings import Settings
from dragoman.store import Store, open_store

pytestmark = pytest.mark.anyio
TABLE = json.dumps(
    {
        "platform": {"workspace": "acme", "role": "admin"},
        "sales": {"workspace": "acme", "capabilities": ["mcp_crm"]},
        "support": {"workspace": "acme", "capabilities": ["mcp_mail"]},
        "partners": {"workspace": "out", "capabilities": ["mcp_wiki"]},
    }
)


@asynccontextmanager
async def opened(
    url: str, server: IssuerServer, claim: str = "groups"
) -> AsyncGenerator[tuple[Authenticator, Store, Key]]:
    key = server.make_key("ES256")
    server.publish(key)
    issuer = Issuer(url=server.url, audience=AUDIENCE, patience=0.0, groups=group_table(TABLE, claim))
    async with open_store(url) as store:
        await make_local(store.people)
        for name in ("acme", "out"):
            await store.people.put_workspace(Workspace(id=name, name=name))
        async with open_authenticator(
            store.people, Directory(store.people), Supervisor(), issuer
        ) as authenticator:
            yield authenticator, store, key


async def user_of(store: Store, server: IssuerServer) -> User:
    user = await store.people.find_external(f"{server.url}|s-1")
    assert user is not None
    return user


@pytest.mark.parametrize(
    ("groups", "workspace", "role", "capabilities"),
    [
        (["sales"], "acme", "member", {"mcp_crm"}),
        (["unknown", "support", "sales"], "acme", "member", {"mcp_crm", "mcp_mail"}),
        (["platform"], "acme", "admin", {"mcp_integration"}),
        (["sales", "platform"], "acme", "admin", {"mcp_crm", "mcp_integration"}),
        ("partners", "out", "member", {"mcp_wiki"}),
        (["partners", "sales"], "acme", "member", {"mcp_crm"}),  # the table's order decides, not the token's
    ],
)
async def test_groups_give_workspace_role_and_capabilities(
    sqlite_url: str, groups: Any, workspace: str, role: str, capabilities: set[str]
) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, store, key):
        admission = await authenticator.admit(server.token(key, "ES256", groups=groups))
        assert (admission.caller.workspace, admission.caller.role) == (workspace, role)
        user = await user_of(store, server)
        assert (user.workspace, user.role, user.capabilities) == (workspace, role, capabilities)


@pytest.mark.parametrize("groups", [None, [], ["unknown"], [{"name": "sales"}], {"sales": True}, 7, "sales,"])
async def test_who_is_in_none_of_them_is_refused_and_not_made(sqlite_url: str, groups: Any) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, store, key):
        with pytest.raises(Denied, match="none of its groups is let in"):
            await authenticator.admit(server.token(key, "ES256", groups=groups))
        assert await store.people.find_external(f"{server.url}|s-1") is None


async def test_an_issuer_that_left_the_groups_out_is_named_as_the_reason(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, _, key):
        with pytest.raises(Denied, match="there were too many"):
            await authenticator.admit(server.token(key, "ES256", _claim_names={"groups": "src1"}))


@pytest.mark.parametrize(
    ("claim", "claims"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["sales"]}}),
        ("https://acme.test/groups", {"https://acme.test/groups": ["sales"]}),
        ("a.b", {"a.b": ["sales"], "a": {"b": ["platform"]}}),
    ],
)
async def test_the_claim_may_lie_in_an_object(sqlite_url: str, claim: str, claims: dict[str, Any]) -> None:
    async with open_issuer() as server, opened(sqlite_url, server, claim) as (authenticator, store, key):
        assert (await authenticator.admit(server.token(key, "ES256", **claims))).caller.role == "member"
        assert (await user_of(store, server)).capabilities == {"mcp_crm"}


async def test_each_token_decides_anew_and_an_older_one_no_longer(database_url: str) -> None:
    async with open_issuer() as server, opened(database_url, server) as (authenticator, store, key):
        now = int(time.time())

        def token(groups: list[str], age: int) -> str:
            return server.token(key, "ES256", groups=groups, iat=now - age, jti=f"{groups}{age}")

        first = token(["platform"], age=50)
        assert (await authenticator.admit(first)).caller.role == "admin"
        later = token(["sales"], age=40)
        admission = await authenticator.admit(later)
        assert (admission.caller.role, admission.caller.grants) == ("member", (frozenset({"mcp_crm"}),))
        with pytest.raises(Unauthenticated):
            await authenticator.admit(first)
        # What was changed by hand holds until the next request.
        user = await user_of(store, server)
        await store.people.put_user(replace(user, role="admin"))
        authenticator.forget(user.workspace, user.id)
        assert (await authenticator.admit(later)).caller.role == "member"
        with pytest.raises(Denied):
            await authenticator.admit(token(["gone"], age=30))
        # Their keys and sessions have nothing left, either.
        left = await authenticator.admit_again(user.workspace, user.id)
        assert (left.caller.role, left.caller.grants) == ("member", (frozenset[str](),))
        with pytest.raises(Unauthenticated):
            await authenticator.admit(later)
        assert (await authenticator.admit(token(["sales"], age=20))).caller.grants == (
            frozenset({"mcp_crm"}),
        )


async def test_a_token_without_its_time_is_refused_where_groups_decide(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, _, key):
        with pytest.raises(Unauthenticated):
            await authenticator.admit(server.token(key, "ES256", groups=["sales"], iat=None))


async def test_whom_the_issuer_made_and_changed_is_in_the_audit_trail(tmp_path: Path) -> None:
    async with open_issuer() as server:
        key = server.make_key("ES256")
        server.publish(key)
        settings = Settings(
            home=tmp_path,
            multi_user=True,
            oidc_issuer=server.url,
            oidc_audience=AUDIENCE,
            oidc_groups='{"sales": {"capabilities": ["mcp_crm"]}, "support": {}}',
        )
        async with Hub(settings) as hub:
            now = int(time.time())
            for groups, age in (["sales"], 9), (["sales", "support"], 5):
                token = server.token(key, "ES256", groups=groups, iat=now - age)
                admission = await hub.authenticator.admit(token)
            told = [one for one in reversed(await hub.audit.list()) if one.subject == admission.caller.user]
            assert [one.action for one in told] == ["user.added", "user.updated"]
            assert all(one.details["by"] == "issuer" for one in told)
            assert told[1].details["changed"] == ["capabilities", "groups_read_at"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("sales", "it is invalid JSON"),
        ("[]", "it should be an object"),
        ("{}", "names no group"),
        ('{"sales": {"rol": "admin"}}', "'rol' of 'sales' is not known"),
        ('{"sales": {"role": "owner"}}', "'role' of 'sales'"),
        ('{"sales": {"capabilities": "mcp_crm"}}', "'capabilities' of 'sales'"),
        ('{"": {}}', "at least 1 character"),
    ],
)
def test_a_wrong_table_is_named_at_the_start(table: str, words: str) -> None:
    settings = Settings(
        multi_user=True, oidc_issuer="https://login.test", oidc_audience="x", oidc_groups=table
    )
    with pytest.raises(InvalidConfig, match=words):
        issuer_of(settings)
