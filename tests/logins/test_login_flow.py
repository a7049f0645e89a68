"""A client logs in by its URL alone, over real HTTP: metadata, registration, consent, tokens, their end."""

from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from api.live import Live, open_service
from logins.client_flow import CALLBACK, INITIALIZE, Client, Person, answer_of, asked, message_of
from servers.processes import stdio

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def service(home: Path, **settings: Any) -> AsyncGenerator[Live]:
    """With two connectors, `mail` and `files`."""
    async with open_service(home, defer_tools="never", **settings) as live:
        for slug in ("mail", "files"):
            await live.hub.connectors.add(slug, shared=True, **stdio())
        yield live


async def test_a_client_finds_its_way_from_the_url_to_its_tools(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        stranger = await asked(live, "POST", "/mcp", json=INITIALIZE)
        assert stranger.status == 401
        place = f"{live.url}/.well-known/oauth-protected-resource/mcp"
        challenge = stranger.headers["WWW-Authenticate"]
        assert challenge == f'Bearer resource_metadata="{place}", scope="tools:read tools:write"'
        resource = (await asked(live, "GET", "/.well-known/oauth-protected-resource/mcp")).value
        assert resource["resource"] == f"{live.url}/mcp"
        assert resource["authorization_servers"] == [live.url]
        server = (await asked(live, "GET", "/.well-known/oauth-authorization-server")).value
        assert server["issuer"] == live.url
        assert server["code_challenge_methods_supported"] == ["S256"]
        assert server["token_endpoint"] == f"{live.url}/oauth/token"
        assert server.items() <= (await asked(live, "GET", "/.well-known/openid-configuration")).value.items()
        person, client = await Person.signed_in(live), Client(live)
        assert (await client.register()).status == 201
        page = await person.look(client.query())
        assert page.status == 200
        assert "Test Client wants to use your tools" in page.body.decode()
        answered = await person.answer(client.query())
        assert answered.headers["Location"].startswith(CALLBACK + "?")
        back = answer_of(answered)
        assert (back["state"], back["iss"]) == ("st/ate", live.url)
        reply = await client.redeem(back["code"])
        assert reply.status == 200
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.value["scope"] == "tools:read tools:write"
        names = await client.tools()
        assert {"mcp_mail_echo", "mcp_files_send"} <= {*names}
        called = message_of(await client.ask("tools/call", name="mcp_mail_echo", arguments={"text": "hello"}))
        assert "hello" in str(called["result"]["content"])


async def test_a_client_logs_in_at_the_address_of_a_bundle_or_is_given_one(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        say = {"tool": "mail__echo", "name": "say"}
        await live.hub.bundles.create("talk", [say, "mail__add"])
        person, client = await Person.signed_in(live), Client(live, "/mcp/bundles/talk")
        assert (await client.register()).status == 201
        assert "The bundle <b>talk</b>" in (await person.look(client.query())).body.decode()
        await client.log_in(person)
        assert {*await client.tools()} == {"say", "mcp_mail_add"}
        other = Client(live)
        await other.log_in(person, use="chosen", connector="bundle:me/talk", do="read", period="hour")
        assert await other.tools() == ["say"]
        reply = message_of(await other.ask("tools/call", name="mcp_mail_echo", arguments={"text": "x"}))
        assert "error" in reply
        keys = await live.hub.clients.list()
        assert {word for key in keys for word in key.capabilities or () if "mcp_" in word} == set()


async def test_what_was_not_chosen_is_not_there(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        person, client = await Person.signed_in(live), Client(live)
        await client.log_in(person, use="chosen", connector="mail", do="read", period="hour")
        assert client.tokens["scope"] == "tools:read"
        names = await client.tools()
        assert "mcp_mail_echo" in names
        assert not any(name.startswith("mcp_files_") for name in names)
        assert "mcp_mail_send" not in names
        for tool in ("mcp_files_echo", "mcp_mail_send"):
            reply = message_of(await client.ask("tools/call", name=tool, arguments={"text": "x"}))
            assert "error" in reply or reply["result"]["isError"], tool
            assert "x" not in str(reply.get("result", {}).get("structuredContent"))

        # What it could be allowed it may ask for; what was not chosen is still unknown.
        place = f'resource_metadata="{live.url}/.well-known/oauth-protected-resource/mcp"'
        challenge = f'Bearer error="insufficient_scope", {place}, scope="tools:read tools:write"'
        call = {"name": "mcp_mail_send", "arguments": {"text": "x"}}
        for name, arguments in (("mcp_mail_send", {"text": "x"}), ("call_tool", call)):
            lacking = await client.ask("tools/call", name=name, arguments=arguments)
            assert (lacking.status, lacking.headers["WWW-Authenticate"]) == (403, challenge)
        for tool in ("mcp_files_send", "mcp_mail_none"):
            unknown = await client.ask("tools/call", name=tool, arguments={})
            assert (unknown.status, "WWW-Authenticate" in unknown.headers) == (400, False), tool
        (key,) = await live.hub.clients.list()
        assert (key.name, key.way, sorted(key.capabilities or ())) == (
            "Test Client",
            "mcp",
            ["*", "mcp_mail", "read_only"],
        )
        assert await live.hub.people.keys() == []


async def test_a_token_opens_its_own_address_and_no_other(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        client = Client(live, "/mcp/mail")
        await client.log_in(await Person.signed_in(live))
        assert all(not name.startswith("mcp_files") for name in await client.tools())
        for path in ("/mcp", "/mcp/files"):
            reply = await client.ask(path=path)
            assert reply.status == 401
            assert 'error="invalid_token"' in reply.headers["WWW-Authenticate"]
            assert reply.headers["WWW-Authenticate"].count(f'oauth-protected-resource{path}"') == 1
        bearer = {"Authorization": f"Bearer {client.tokens['access_token']}"}
        for path in ("/api/connectors", "/api/me", "/metrics", "/clients"):
            assert (await asked(live, "GET", path, headers=bearer)).status == 401
        taken = await asked(live, "POST", "/sign-in", data={"key": client.tokens["access_token"]})
        assert taken.status == 401


async def test_metadata_of_what_is_there_looks_like_that_of_what_is_not(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        like = await asked(live, "GET", "/.well-known/oauth-protected-resource/mcp")
        for path in ("/mcp/mail", "/mcp/no-such-thing", "/mcp/bundles/any"):
            reply = await asked(live, "GET", f"/.well-known/oauth-protected-resource{path}")
            assert reply.value == {**like.value, "resource": live.url + path}
            assert (await asked(live, "POST", path, json=INITIALIZE)).status == 401


async def test_where_nothing_is_offered_the_answer_is_404(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        for place in ("oauth-protected-resource/api", "anything"):
            assert (await asked(live, "GET", f"/.well-known/{place}")).status == 404
    async with open_service(tmp_path / "off", client_login="off") as live:
        for place in (
            "oauth-protected-resource",
            "oauth-protected-resource/mcp",
            "oauth-authorization-server",
            "openid-configuration",
        ):
            assert (await asked(live, "GET", f"/.well-known/{place}")).status == 404
        stranger = await asked(live, "POST", "/mcp", json=INITIALIZE)
        assert stranger.headers["WWW-Authenticate"] == 'Bearer realm="dragoman"'
        assert (await Client(live).register()).status == 404


async def test_a_code_is_good_once_and_for_who_asked_for_it(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        person, client, other = await Person.signed_in(live), Client(live), Client(live)
        await client.register()
        await other.register()
        wrongs: tuple[dict[str, Any], ...] = (
            {"client_id": other.id},
            {"code_verifier": "x" * 43},
            {"redirect_uri": "http://127.0.0.1:1/other"},
            {"code_verifier": None},
        )
        for wrong in wrongs:
            reply = await client.redeem(await client.allowed(person), **wrong)
            assert (reply.status, reply.value["error"]) == (400, "invalid_grant"), wrong
        reply = await client.redeem(await client.allowed(person), resource=f"{live.url}/mcp/mail")
        assert reply.value["error"] == "invalid_target"
        code = await client.allowed(person)
        assert (await client.redeem(code)).status == 200
        assert (await client.ask()).status == 200
        assert (await client.redeem(code)).value["error"] == "invalid_grant"
        assert (await client.ask()).status == 401, "a code that comes twice was stolen"


async def test_a_refresh_token_that_comes_twice_ends_the_login(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live), do="read")
        first = client.tokens
        wider = await client.refresh(scope="tools:read tools:write")
        assert (wider.status, wider.value["error"]) == (400, "invalid_scope")
        assert (await client.refresh()).status == 200
        assert client.tokens["refresh_token"] != first["refresh_token"]
        assert client.tokens["scope"] == "tools:read"
        assert (await client.ask()).status == 200
        reply = await client.refresh(first["refresh_token"])
        assert (reply.status, reply.value["error"]) == (400, "invalid_grant")
        assert (await client.ask()).status == 401
        assert (await client.refresh()).value["error"] == "invalid_grant"


async def test_a_client_that_wants_less_gets_less(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live))
        assert "mcp_mail_send" in await client.tools()
        assert (await client.refresh(scope="tools:read")).status == 200
        assert "mcp_mail_send" not in await client.tools()


async def test_what_is_revoked_opens_nothing(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        person = await Person.signed_in(live)
        client = await Client(live).log_in(person)
        (key,) = await live.hub.clients.list()
        assert await live.hub.clients.revoke(key.id)
        assert (await client.ask()).status == 401
        assert (await client.refresh()).value["error"] == "invalid_grant"
        await client.log_in(person)
        assert (await client.ask()).status == 200
        assert (await client.post({"token": client.tokens["refresh_token"]}, "/oauth/revoke")).status == 200
        assert (await client.ask()).status == 401
        trail = [entry.action for entry in await live.hub.audit.list(limit=20)]
        assert {"client.allowed", "client.connected", "client.revoked"} <= {*trail}


async def test_calls_are_recorded_under_the_name_of_the_client(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live))
        await client.ask("tools/call", name="mcp_mail_echo", arguments={"text": "hello"})
        (record, *_) = await live.hub.calls()
        assert (record.user, record.way, record.agent) == ("owner", "mcp", "Test Client (client)")


WRONG_REQUESTS: tuple[tuple[dict[str, str | None], str], ...] = (
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
    ({"resource": "/api"}, "invalid_target"),
    ({"scope": "tools:read admin"}, "invalid_scope"),
    ({"prompt": "none"}, "consent_required"),
)


async def test_a_wrong_request_is_told_to_the_client(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        person, client = await Person.signed_in(live), Client(live)
        await client.register()
        for changes, error in WRONG_REQUESTS:
            query = client.query(**changes)
            for reply in (await person.look(query), await person.answer(query)):
                assert reply.headers["Location"].startswith(CALLBACK)
                back = answer_of(reply)
                assert (back["error"], back["state"], back["iss"]) == (error, "st/ate", live.url), changes
                assert "code" not in back


WRONG_ADDRESSES = (
    "https://evil.example/callback",
    "http://127.0.0.1.evil.example:33418/callback",
    "http://127.0.0.1:33418/callback/../other",
    "http://user@127.0.0.1:33418/callback",
    "http://127.0.0.1:33418/callback#x",
    "http://localhost:33418/callback",
    "",
)


async def test_nobody_is_sent_to_an_address_that_was_not_named(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        person, client = await Person.signed_in(live), Client(live)
        await client.register()
        queries = [client.query(redirect_uri=address) for address in WRONG_ADDRESSES]
        for query in (*queries, client.query(client_id="dcr_nobody")):
            for reply in (await person.look(query), await person.answer(query)):
                assert reply.status == 422, query
                assert "Location" not in reply.headers


async def test_a_program_on_this_computer_may_listen_on_any_port(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        person, client = await Person.signed_in(live), Client(live)
        await client.register()
        moved = CALLBACK.replace("33418", "50123")
        assert (await person.look(client.query(redirect_uri=moved))).status == 200


async def test_nobody_allows_anything_for_a_person_who_is_not_asked(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        person, client = await Person.signed_in(live), Client(live)
        await client.register()
        stranger = await asked(live, "GET", f"/oauth/authorize?{client.query()}")
        assert stranger.status == 303
        assert stranger.headers["Location"].startswith("/sign-in?next=/oauth/authorize%3Fresponse_type")
        person.csrf = "guessed"
        assert (await person.answer(client.query())).status == 403
        page = await person.look(client.query())
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["X-Frame-Options"] == "DENY"
        assert await live.hub.clients.list() == []


async def test_a_denied_client_is_told_so(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        person, client = await Person.signed_in(live), Client(live)
        await client.register()
        back = answer_of(await person.answer(client.query(), answer="deny"))
        assert back["error"] == "access_denied"


async def test_a_member_gives_no_more_than_they_have(tmp_path: Path) -> None:
    async with service(tmp_path, multi_user=True) as live:
        await live.hub.people.add_user("ann", capabilities=["mcp_mail"])
        scopes = ("read", "call", "manage")
        _, key = await live.hub.people.add_key(
            "console", user="ann", scopes=scopes, capabilities=["mcp_mail"]
        )
        client = await Client(live).log_in(await Person.signed_in(live, key))
        names = await client.tools()
        assert "mcp_mail_send" in names
        assert not any(name.startswith("mcp_files_") for name in names)
        await live.hub.people.update_user("ann", is_active=False)
        assert (await client.ask()).status == 401
        assert (await client.refresh()).value["error"] == "invalid_grant"


async def test_only_who_runs_the_installation_may_introspect(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live))
        token = client.tokens["access_token"]
        assert (await asked(live, "POST", "/oauth/introspect", data={"token": token})).status == 401
        operator = {"Authorization": f"Bearer {live.token}"}

        async def said(word: str) -> Any:
            reply = await asked(live, "POST", "/oauth/introspect", data={"token": word}, headers=operator)
            return reply.value

        facts = await said(token)
        assert (facts["active"], facts["aud"], facts["client_id"]) == (True, f"{live.url}/mcp", client.id)
        assert (await said(client.tokens["refresh_token"]))["active"]
        assert await said("nonsense") == {"active": False}
        await live.hub.clients.revoke((await live.hub.clients.list())[0].id)
        assert await said(token) == {"active": False}


async def test_every_node_knows_what_another_allowed_signed_and_revoked(
    tmp_path: Path, postgres_url: str
) -> None:
    shared: dict[str, Any] = {
        "key": b64encode(b"k" * 32).decode(),
        "operator_token": ("drg_" + "t" * 40,),
        "database_url": postgres_url,
        "public_url": "https://tools.example",
    }
    async with (
        service(tmp_path / "one", **shared) as one,
        open_service(tmp_path / "two", **shared) as two,
    ):
        client = Client(one)
        await client.register()
        query = client.query(resource="https://tools.example/mcp")
        code = answer_of(await (await Person.signed_in(two, shared["operator_token"][0])).answer(query))[
            "code"
        ]
        assert (await client.redeem(code, at=one, resource="https://tools.example/mcp")).status == 200
        assert (await client.ask(at=two)).status == 200
        first = client.tokens
        assert (await client.refresh(at=two)).status == 200
        assert (await client.ask(at=one)).status == 200
        assert (await client.refresh(first["refresh_token"], at=one)).status == 400
        assert (await client.ask(at=one)).status == 401
        assert (await client.refresh(at=two)).status == 400


async def test_keys_that_sign_are_replaced_and_the_old_ones_still_verify(tmp_path: Path) -> None:
    async with service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live))
        tokens = live.hub.authenticator.access_tokens
        assert tokens is not None
        (before,) = (await asked(live, "GET", "/oauth/jwks")).value["keys"]
        assert {"kty", "crv", "x", "y", "kid"} <= before.keys()
        assert "d" not in before
        made = await tokens.signing.rotate()
        assert (await client.ask()).status == 200
        await client.refresh()
        newest, *_ = (await asked(live, "GET", "/oauth/jwks")).value["keys"]
        assert newest["kid"] == made
        assert (await client.ask()).status == 200
