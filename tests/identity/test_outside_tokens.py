"""Tokens of an outside issuer: what opens, for whom, and all that must not."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from issuer_server import AUDIENCE, IssuerServer, open_issuer, unsigned, with_secret
from joserfc import jwt

from dragoman.background_tasks import Supervisor
from dragoman.errors import Denied, InvalidConfig, Unauthenticated, Unreachable
from dragoman.identity.authenticator import Authenticator, open_authenticator
from dragoman.identity.directory import Directory, make_local
from dragoman.identity.issuer import Issuer
from dragoman.people import Workspace
from dragoman.store import Store, open_store

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(url: str, server: IssuerServer, **facts: Any) -> AsyncGenerator[tuple[Authenticator, Store]]:
    facts = {"patience": 0.0, **facts}
    issuer = Issuer(url=server.url, audience=AUDIENCE, **facts)
    async with open_store(url) as store:
        await make_local(store.people)
        async with open_authenticator(
            store.people, Directory(store.people), Supervisor(), issuer
        ) as authenticator:
            yield authenticator, store


async def refused(authenticator: Authenticator, token: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        await authenticator.admit(token)
    assert caught.value.message == "the bearer token is wrong, has expired, or was revoked"
    assert "hub.people.add_key" in str(caught.value.hint)


async def test_a_token_makes_its_user_once_and_finds_them_again(database_url: str) -> None:
    async with open_issuer() as server, opened(database_url, server) as (authenticator, store):
        key = server.make_key()
        server.publish(key)
        first = await authenticator.admit(server.token(key, preferred_username="ada"))
        again = await authenticator.admit(server.token(key, preferred_username="ada", jti="2"))
        assert first.caller == again.caller
        assert (first.caller.workspace, first.caller.role) == ("local", "member")
        assert first.caller.grants == (frozenset({"mcp_integration"}),)
        user = await store.people.find_external(f"{server.url}|s-1")
        assert user is not None
        assert (user.id, user.name, user.role) == (first.caller.user, "ada", "member")
        other = await authenticator.admit(server.token(key, sub="s-2", preferred_username="ada"))
        names = {one.id: one.name for one in await store.people.users("local")}
        assert names[other.caller.user].startswith("ada-")
        assert (await authenticator.admit(server.token(key, sub="s-3", email="e@x.test"))).caller
        assert {"e@x.test", "ada", "owner"} <= {one.name for one in await store.people.users("local")}


async def test_the_email_that_the_issuer_vouches_for_is_kept_and_renewed(database_url: str) -> None:
    async with open_issuer() as server, opened(database_url, server) as (authenticator, store):
        key = server.make_key()
        server.publish(key)

        async def kept(sub: str, **claims: Any) -> str | None:
            await authenticator.admit(server.token(key, sub=sub, preferred_username=sub, **claims))
            user = await store.people.find_external(f"{server.url}|{sub}")
            assert user is not None
            return user.email

        assert await kept("ada", email="ada@x.test") == "ada@x.test"
        assert await kept("ada", email="new@x.test", email_verified=True) == "new@x.test"
        assert await kept("ada") == "new@x.test"
        assert await kept("eve", email="ada@x.test", email_verified=False) is None
        for odd in ("no address", "a@b\nObey", 7, "a" * 300 + "@x.test"):
            assert await kept("eve", email=odd) is None, odd


async def test_one_person_who_comes_many_times_at_once_is_one_user(database_url: str) -> None:
    async with open_issuer() as server, opened(database_url, server) as (authenticator, store):
        key = server.make_key()
        server.publish(key)
        tokens = [server.token(key, preferred_username="ada", jti=str(number)) for number in range(8)]
        admissions = await asyncio.gather(*(authenticator.admit(token) for token in tokens))
        assert len({one.caller.user for one in admissions}) == 1
        assert len(await store.people.users("local")) == 2


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_every_accepted_algorithm_works(sqlite_url: str, algorithm: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, _):
        key = server.make_key(algorithm)
        server.publish(key)
        assert (await authenticator.admit(server.token(key, algorithm, aud=["x", AUDIENCE]))).caller.user


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://another.test"},
        {"aud": ["https://another.test"]},
        {"aud": None},
        {"aud": 7},
        {"iss": "https://another.test"},
        {"iss": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"exp": "soon"},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"sub": "x" * 300},
    ],
    ids=str,
)
async def test_a_token_that_is_not_for_us_or_not_now_is_refused(
    sqlite_url: str, changes: dict[str, Any]
) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, store):
        key = server.make_key()
        server.publish(key)
        await refused(authenticator, server.token(key, **changes))
        assert len(await store.people.users("local")) == 1
        assert await authenticator.admit(
            server.token(key, exp=int(time.time()) - 30, nbf=int(time.time()) + 30)
        )


async def test_a_token_that_nobody_signed_or_with_a_shared_secret_is_refused(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, _):
        key, stranger = server.make_key(), server.make_key()
        server.publish(key)
        claims = server.claims()
        good = server.token(key)
        assert await authenticator.admit(good)
        for name in ("none", "None", "NONE"):
            await refused(authenticator, unsigned(claims, {"alg": name, "kid": "one"}))
        await refused(authenticator, good.rpartition(".")[0] + ".")
        for secret in (key.as_pem(private=False), json.dumps(key.as_dict(private=False)).encode()):
            await refused(authenticator, with_secret(claims, {"alg": "HS256", "kid": "one"}, secret))
        await refused(authenticator, server.token(stranger))
        await refused(authenticator, server.token(key, "RS512"))
        await refused(authenticator, jwt.encode({"alg": "RS256", "kid": "two"}, claims, key))
        head, body, signature = good.split(".")
        await refused(authenticator, ".".join([head, body[:-2] + "AA", signature]))
        for garbage in ("..", "a.b.c", "é.ü.ö", "x" * 20_000 + "..", f"{head}.{body}.é"):
            await refused(authenticator, garbage)
        # A secret that the issuer publishes by mistake is no key to us.
        server.keys.append({"kty": "oct", "kid": "shared", "k": "c2VjcmV0c2VjcmV0"})
        await refused(authenticator, with_secret(claims, {"alg": "HS256", "kid": "shared"}, b"secretsecret"))


async def test_keys_rotate_and_a_withdrawn_one_opens_nothing(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, _):
        old, new = server.make_key(kid="old"), server.make_key(kid="new")
        server.publish(old)
        token = server.token(old)
        assert await authenticator.admit(token)
        server.publish(old, new)
        assert await authenticator.admit(server.token(new))
        assert await authenticator.admit(token)
        server.publish(new)
        await refused(authenticator, server.token(server.make_key(kid="unknown")))  # makes it look again
        await refused(authenticator, token)
        assert await authenticator.admit(server.token(new))


async def test_unknown_keys_do_not_make_it_ask_again_and_again(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server, patience=30.0) as (authenticator, _):
        key = server.make_key()
        server.publish(key)
        assert await authenticator.admit(server.token(key))
        for number in range(20):
            await refused(authenticator, server.token(server.make_key("ES256", f"k{number}"), "ES256"))
        assert server.asked == 1


async def test_many_at_once_ask_the_issuer_once(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server, patience=30.0) as (authenticator, _):
        key = server.make_key()
        server.publish(key)
        server.gate.clear()
        tokens = [server.token(key, jti=str(number)) for number in range(10)]
        async with asyncio.TaskGroup() as tasks:
            coming = [tasks.create_task(authenticator.admit(token)) for token in tokens]
            while not server.asked:
                await asyncio.sleep(0)
            server.gate.set()
        assert all(one.result().caller.user for one in coming)
        assert server.asked == 1


async def test_known_keys_are_kept_while_the_issuer_is_down(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server, age=0.0) as (authenticator, _):
        key = server.make_key()
        server.publish(key)
        server.is_down = True
        with pytest.raises(Unreachable):
            await authenticator.admit(server.token(key))
        server.is_down = False
        token = server.token(key)
        assert await authenticator.admit(token)
        server.is_down = True
        assert await authenticator.admit(token)
        assert await authenticator.admit(server.token(key, sub="s-2"))
        await refused(authenticator, server.token(server.make_key(kid="unknown")))


async def test_an_issuer_that_says_it_is_another_is_not_believed(sqlite_url: str) -> None:
    async with open_issuer() as server, opened(sqlite_url, server) as (authenticator, _):
        key = server.make_key()
        server.publish(key)
        for other in (f"{server.url}/", "https://another.test"):
            server.said_issuer = other
            with pytest.raises(Unreachable):
                await authenticator.admit(server.token(key))


async def test_a_user_belongs_to_the_workspace_that_the_token_names(database_url: str) -> None:
    async with open_issuer() as server:
        key = server.make_key()
        server.publish(key)
        async with opened(database_url, server, workspace_claim="org") as (authenticator, store):
            for identity in ("wsp_1", "wsp_2"):
                await store.people.put_workspace(Workspace(id=identity, name=f"name of {identity}"))
            by_id = await authenticator.admit(server.token(key, org="wsp_1"))
            assert by_id.caller.workspace == "wsp_1"
            by_name = await authenticator.admit(server.token(key, sub="s-2", org="name of wsp_2"))
            assert by_name.caller.workspace == "wsp_2"
            for org in ("nowhere", "", None, 3, ["wsp_1"]):
                with pytest.raises(Denied, match="does not exist"):
                    await authenticator.admit(server.token(key, sub="s-3", org=org))
            with pytest.raises(Denied, match="another workspace"):
                await authenticator.admit(server.token(key, org="wsp_2"))


async def test_an_inactive_user_is_kept_out_though_the_token_is_good(database_url: str) -> None:
    async with open_issuer() as server, opened(database_url, server) as (authenticator, store):
        key = server.make_key()
        server.publish(key)
        token = server.token(key)
        caller = (await authenticator.admit(token)).caller
        user = await store.people.find_user(caller.workspace, caller.user)
        assert user is not None
        await store.people.put_user(replace(user, is_active=False))
        authenticator.forget(caller.workspace, caller.user)
        await refused(authenticator, token)


async def test_an_address_that_is_not_encrypted_is_no_issuer(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        for url in ("http://issuer.test", "issuer.test", "ftp://x", "https://"):
            with pytest.raises(InvalidConfig):
                async with open_authenticator(
                    store.people, Directory(store.people), Supervisor(), Issuer(url=url, audience="x")
                ):
                    pass
