"""What somebody could try against logins by OAuth. Each attack says what it got, or None when it got nothing.

`ATTACKS` has all of them by name; the name begins with the family.
"""

import asyncio
import json
import re
import time
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import new as hmac
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from joserfc import jws, jwt
from joserfc.jwk import ECKey

from api.live import Reply
from logins.attacked_service import WEB_CALLBACK, Attacked, own_key
from logins.client_flow import CALLBACK, Client, Person, answer_of, asked
from patience import patient

Attack = Callable[[Attacked], Awaitable[str | None]]
ATTACKS: dict[str, Attack] = {}


def attack(name: str) -> Callable[[Attack], Attack]:
    def add(one: Attack) -> Attack:
        assert name not in ATTACKS, name
        ATTACKS[name] = one
        return one

    return add


def each(family: str, make: Callable[[Any], Attack], cases: Mapping[str, Any]) -> None:
    for name, case in cases.items():
        attack(f"{family}: {name}")(make(case))


def _said(reply: Reply) -> str:
    return f"{reply.status} {reply.headers.get('Location', '')} {reply.body[:200]!r}"


# Where the browser is sent


def _redirect(to_app: str, address: str | None) -> Attack:
    async def run(at: Attacked) -> str | None:
        client = at.fresh(getattr(at, to_app))
        query = client.query(redirect_uri=address)
        for reply in (await at.bob.look(query), await at.bob.answer(query)):
            if reply.status != 422 or "Location" in reply.headers:
                return _said(reply)
        return None

    return run


each(
    "redirect of a program",
    lambda address: _redirect("app", address),
    {
        "another host": "https://evil.example/callback",
        "another host, same port": "http://evil.example:33418/callback",
        "our host as a label": "http://127.0.0.1.evil.example:33418/callback",
        "steps upwards": CALLBACK + "/../other",
        "another path": "http://127.0.0.1:33418/other",
        "a slash more": CALLBACK + "/",
        "other letters": "http://127.0.0.1:33418/Callback",
        "a query": CALLBACK + "?to=evil",
        "an empty query with a name": CALLBACK + "?code",
        "a fragment": CALLBACK + "#x",
        "an empty fragment": CALLBACK + "#",
        "a user": "http://user@127.0.0.1:33418/callback",
        "another host as user": "http://evil.example@127.0.0.1:33418/callback",
        "our host as user": "http://127.0.0.1:33418@evil.example/callback",
        "https": "https://127.0.0.1:33418/callback",
        "localhost": "http://localhost:33418/callback",
        "IPv6": "http://[::1]:33418/callback",
        "IPv4 in IPv6": "http://[::ffff:127.0.0.1]:33418/callback",
        "short IPv4": "http://127.1:33418/callback",
        "IPv4 as a number": "http://2130706433:33418/callback",
        "IPv4 as hex": "http://0x7f000001:33418/callback",
        "a dot behind the host": "http://127.0.0.1.:33418/callback",
        "a neighbour": "http://127.0.0.2:33418/callback",
        "any address": "http://0.0.0.0:33418/callback",
        "full-width digits": "http://１２７.0.0.1:33418/callback",
        "an encoded letter": "http://127.0.0.1:33418/%63allback",
        "encoded steps": CALLBACK + "%2f..%2fevil",
        "a backslash": "http://127.0.0.1:33418\\@evil.example/callback",
        "a backslash in the path": "http://127.0.0.1:33418/\\evil.example/callback",
        "a line": CALLBACK + "\r\nLocation: https://evil.example/",
        "a tab": "http://127.0.0.1:33418/call\tback",
        "a space before": " " + CALLBACK,
        "a zero": CALLBACK + "\x00",
        "path parameters": CALLBACK + ";x=1",
        "no port that there is": "http://127.0.0.1:99999/callback",
        "a port of letters": "http://127.0.0.1:evil/callback",
        "a script": "javascript:alert(1)//127.0.0.1:33418/callback",
        "a document": "data:text/html,<script>alert(1)</script>",
        "no scheme": "//127.0.0.1:33418/callback",
        "one slash": "http:/127.0.0.1:33418/callback",
        "a scheme of a program": "cursor://127.0.0.1:33418/callback",
        "nothing": "",
        "none": None,
        "that of another client": WEB_CALLBACK,
        "a very long one": CALLBACK + "?" + "x" * 5000,
    },
)
each(
    "redirect of a site",
    lambda address: _redirect("web_app", address),
    {
        "another port": "https://app.example:8443/cb",
        "http": "http://app.example/cb",
        "a dot behind the host": "https://app.example./cb",
        "a label before": "https://evil.app.example/cb",
        "a host behind": "https://app.example.evil.example/cb",
        "our host in the path": "https://evil.example/app.example/cb",
        "our host as user": "https://app.example@evil.example/cb",
        "our host as an encoded user": "https://app.example%2f@evil.example/cb",
        "other letters": "https://APP.example/cb",
        "a slash more": "https://app.example/cb/",
        "a longer path": "https://app.example/cb.evil",
        "a query": "https://app.example/cb?x=1",
        "a full stop of another script": "https://app。example/cb",
    },
)


# What a client asks for


def _request(changes: Mapping[str, str | None], more: str = "") -> Attack:
    """Nothing comes of it but an error: no page to press Allow on, and no code."""

    async def run(at: Attacked) -> str | None:
        query = at.fresh().query(**changes) + more
        for reply in (await at.bob.look(query), await at.bob.answer(query)):
            where = reply.headers.get("Location")
            is_told = where is not None and where.startswith(CALLBACK + "?") and "error" in answer_of(reply)
            if "code" in (answer_of(reply) if where else ()) or not (is_told or reply.status == 422):
                return _said(reply)
        return None

    return run


each(
    "PKCE",
    lambda changes: _request(changes),
    {
        "none": {"code_challenge": None, "code_challenge_method": None},
        "plain": {"code_challenge_method": "plain"},
        "no method, which means plain": {"code_challenge_method": None},
        "a method in other letters": {"code_challenge_method": "s256"},
        "a method that there is not": {"code_challenge_method": "S512"},
        "an empty challenge": {"code_challenge": ""},
        "a short challenge": {"code_challenge": "a" * 42},
        "a long challenge": {"code_challenge": "a" * 129},
        "a challenge with a line": {"code_challenge": "a" * 43 + "\n"},
        "a challenge with padding": {"code_challenge": "a" * 42 + "="},
    },
)
each(
    "request",
    lambda changes: _request(changes),
    {
        "a token at once": {"response_type": "token"},
        "a code and a token": {"response_type": "code token"},
        "an identity": {"response_type": "id_token"},
        "no response type": {"response_type": None},
        "a request object": {"request": "eyJhbGciOiJub25lIn0.e30."},
        "an address of a request": {"request_uri": "http://169.254.169.254/"},
        "the answer in the fragment": {"response_mode": "fragment"},
        "the answer as a form": {"response_mode": "form_post"},
        "the answer to a window": {"response_mode": "web_message"},
        "without asking": {"prompt": "none"},
        "a state that is too long": {"state": "x" * 2001},
        "no client": {"client_id": None},
        "a client that nobody knows": {"client_id": "dcr_nobody"},
        "a client as SQL": {"client_id": "' OR '1'='1"},
        "a client of ten thousand letters": {"client_id": "d" * 10_000},
        "a client of control letters": {"client_id": "dcr_\x00\r\n"},
        "resource: another host": {"resource": "https://evil.example/mcp"},
        "resource: REST": {"resource": "/api"},
        "resource: relative": {"resource": "/mcp"},
        "resource: empty": {"resource": ""},
    },
)
each(
    "request: said twice",
    lambda more: _request({}, more),
    {
        "client": "&client_id=dcr_other",
        "redirect": f"&redirect_uri={quote('https://evil.example/')}",
        "the same redirect": f"&redirect_uri={quote(CALLBACK)}",
        "state": "&state=other",
        "challenge": "&code_challenge=" + "a" * 43,
        "method": "&code_challenge_method=plain",
        "scope": "&scope=tools:read",
        "resource": "&resource=x",
        "response type": "&response_type=token",
    },
)


def _resource(path: str) -> Attack:
    async def run(at: Attacked) -> str | None:
        return await _request({"resource": at.live.url + path})(at)

    return run


each(
    "resource",
    _resource,
    {
        "the root": "/",
        "REST": "/api",
        "the console": "/clients",
        "steps upwards": "/mcp/../api",
        "a step that stays": "/mcp/./mail",
        "encoded": "/mcp/%2e%2e/api",
        "a query": "/mcp?x",
        "a fragment": "/mcp#x",
        "a longer word": "/mcpx",
        "a slash more inside": "/mcp//mail",
        "another host behind": ".evil.example/mcp",
        "another host by a user": "@evil.example/mcp",
        "deep": "/mcp/a/b/c/d/e",
        "very long": "/mcp/" + "a" * 3000,
    },
)


@attack("request: a state with control letters goes back as it came, and is no header")
async def _(at: Attacked) -> str | None:
    state = "a\r\nSet-Cookie: x=1\x00\u202e"
    for choice in ("allow", "deny"):
        reply = await at.bob.answer(at.fresh().query(state=state), answer=choice)
        if "x=1" in reply.headers.get("Set-Cookie", "") or answer_of(reply)["state"] != state:
            return _said(reply)
    return None


@attack("mix-up: every answer says who gives it")
async def _(at: Attacked) -> str | None:
    for reply in (
        await at.bob.answer(at.fresh().query()),
        await at.bob.answer(at.fresh().query(), answer="deny"),
        await at.bob.look(at.fresh().query(response_type="token")),
        await at.bob.answer(at.fresh().query(iss="https://evil.example")),
    ):
        if reply.headers["Location"].count("iss=") != 1 or answer_of(reply)["iss"] != at.live.url:
            return _said(reply)
    return None


@attack("mix-up: who is asked is who answers, by whatever name")
async def _(at: Attacked) -> str | None:
    for header in ("X-Forwarded-Host", "X-Host", "Forwarded", "X-Original-Host"):
        value = "host=evil.example" if header == "Forwarded" else "evil.example"
        for path in ("oauth-authorization-server", "oauth-protected-resource/mcp"):
            reply = await at.raw("GET", f"/.well-known/{path}", headers={header: value})
            if b"evil" in reply.body:
                return f"{header}: {_said(reply)}"
    return None


def _host(name: str) -> Attack:
    async def run(at: Attacked) -> str | None:
        port = urlsplit(at.live.url).port
        headers = {"Host": name.replace("PORT", str(port))}
        reply = await at.raw("GET", "/.well-known/oauth-authorization-server", headers=headers)
        return f"{reply.status} {reply.body[:100]!r}" if reply.status == 200 else None

    return run


each(
    "mix-up: a Host",
    _host,
    {
        "of another": "evil.example",
        "with a user": "evil.example@127.0.0.1:PORT",
        "with a path": "127.0.0.1:PORT/evil",
        "with a query": "127.0.0.1:PORT?evil",
        "with a fragment": "127.0.0.1:PORT#evil",
        "with a quote": '127.0.0.1:PORT"evil',
        "with a port of letters": "127.0.0.1:evil",
        "with a dot behind": "127.0.0.1.:PORT",
        "with a backslash": "127.0.0.1:PORT\\evil.example",
        "of two": "127.0.0.1:PORT, evil.example",
    },
)


# A code


def _code(changes: Mapping[str, str | None]) -> Attack:
    """A code of `bob` with something wrong. `CLIENT` stands for the other client, `URL` for ours."""

    async def run(at: Attacked) -> str | None:
        client = at.fresh()
        code = await client.allowed(at.bob)
        facts: Any = {name: _placed(at, value) for name, value in changes.items()}
        reply = await client.redeem(code, **facts)
        return _said(reply) if reply.status == 200 or b"access_token" in reply.body else None

    return run


def _placed(at: Attacked, value: Any) -> Any:
    return (
        value.replace("CLIENT", at.other_app.id).replace("URL", at.live.url)
        if isinstance(value, str)
        else value
    )


each(
    "code",
    _code,
    {
        "by another client": {"client_id": "CLIENT"},
        "by no client": {"client_id": None},
        "by nobody": {"client_id": ""},
        "with a secret": {"client_secret": "x"},
        "for another redirect": {"redirect_uri": "http://127.0.0.1:33418/other"},
        "for another port": {"redirect_uri": "http://127.0.0.1:1/callback"},
        "without redirect": {"redirect_uri": None},
        "for another resource": {"resource": "URL/mcp/mail"},
        "for REST": {"resource": "URL/api"},
        "for elsewhere": {"resource": "https://evil.example/mcp"},
        "without verifier": {"code_verifier": None},
        "with an empty verifier": {"code_verifier": ""},
        "with a wrong verifier": {"code_verifier": "x" * 43},
        "with a short verifier": {"code_verifier": "x" * 42},
        "with a long verifier": {"code_verifier": "x" * 129},
        "as a refresh token": {"grant_type": "refresh_token"},
        "as a password": {"grant_type": "password", "username": "bob", "password": "x"},
        "as a client": {"grant_type": "client_credentials"},
        "as an assertion": {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"},
        "exchanged": {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange"},
        "by a device": {"grant_type": "urn:ietf:params:oauth:grant-type:device_code"},
        "without a grant type": {"grant_type": None},
    },
)


@attack("code: the challenge is no verifier")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    code = await client.allowed(at.bob)
    made = urlsafe_b64encode(sha256(client.verifier.encode()).digest()).rstrip(b"=").decode()
    reply = await client.redeem(code, code_verifier=made)
    return _said(reply) if reply.status == 200 else None


@attack("code: twice, and what it brought is over")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    code = await client.allowed(at.bob)
    await client.redeem(code)
    token, refresh = client.tokens["access_token"], client.tokens["refresh_token"]
    if (again := await client.redeem(code)).status == 200:
        return _said(again)
    if (left := await client.refresh(refresh)).status == 200:
        return _said(left)
    return await at.opens(token)


@attack("code: two at once")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    code = await client.allowed(at.bob)
    replies = await asyncio.gather(*(client.redeem(code) for _ in range(5)))
    good = [reply.status for reply in replies].count(200)
    return None if good <= 1 else f"{good} logins by one code"


@attack("code: after an attempt with a wrong verifier")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    code = await client.allowed(at.bob)
    await client.redeem(code, code_verifier="x" * 43)
    reply = await client.redeem(code)
    return _said(reply) if reply.status == 200 else None


@attack("code: at another installation")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    reply = await client.redeem(await client.allowed(at.bob), at=at.elsewhere)
    return _said(reply) if reply.status == 200 else None


def _form(body: Callable[[Client, str], dict[str, Any]], method: str = "POST") -> Attack:
    async def run(at: Attacked) -> str | None:
        client = at.fresh()
        code = await client.allowed(at.bob)
        reply = await at.raw(method, "/oauth/token", **body(client, code))
        return _said(reply) if reply.status == 200 else None

    return run


def _fields(client: Client, code: str) -> dict[str, str]:
    return {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client.id,
        "redirect_uri": CALLBACK,
        "code_verifier": client.verifier,
    }


_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}
attack("code: as JSON")(_form(lambda client, code: {"json": _fields(client, code)}))
attack("code: in the address")(_form(lambda client, code: {"params": _fields(client, code)}))
attack("code: by GET")(_form(lambda client, code: {"params": _fields(client, code)}, "GET"))
attack("code: as files")(
    _form(
        lambda client, code: {
            "data": _fields(client, code),
            "headers": {"Content-Type": "multipart/form-data"},
        }
    )
)
attack("code: a verifier that came twice")(
    _form(
        lambda client, code: {
            "data": urlencode(_fields(client, code)) + "&code_verifier=" + "x" * 43,
            "headers": _TYPE,
        }
    )
)
attack("code: by another client in the header")(
    _form(
        lambda client, code: {
            "data": _fields(client, code),
            "headers": {"Authorization": "Basic " + b64encode(b"dcr_other:").decode()},
        }
    )
)
attack("code: a form of a megabyte")(
    _form(lambda client, code: {"data": {**_fields(client, code), "x": "x" * 1_000_000}})
)
attack("code: from a page of another site")(
    _form(lambda client, code: {"data": _fields(client, code), "headers": {"Origin": "https://evil.example"}})
)


# A refresh token


def _refresh(make: Callable[[Client], str] | None = None, **changes: Any) -> Attack:
    async def run(at: Attacked) -> str | None:
        client = await at.login(do="read")
        facts: Any = {name: _placed(at, value) for name, value in changes.items()}
        reply = await client.refresh(make(client) if make else None, **facts)
        return _said(reply) if reply.status == 200 else None

    return run


attack("refresh: by another client")(_refresh(client_id="CLIENT"))
attack("refresh: by no client")(_refresh(client_id=None))
attack("refresh: for more")(_refresh(scope="tools:read tools:write"))
attack("refresh: for writing only")(_refresh(scope="tools:write"))
attack("refresh: for everything")(_refresh(scope="*"))
attack("refresh: for nothing at all")(_refresh(scope=""))
attack("refresh: for an admin")(_refresh(scope="tools:read admin"))
attack("refresh: for another resource")(_refresh(resource="https://evil.example/mcp"))
attack("refresh: as a code")(_refresh(grant_type="authorization_code"))
attack("refresh: with a letter changed")(_refresh(lambda one: one.tokens["refresh_token"][:-4] + "AAAA"))
attack("refresh: cut")(_refresh(lambda one: one.tokens["refresh_token"][:-8]))
attack("refresh: without its beginning")(_refresh(lambda one: one.tokens["refresh_token"][4:]))
attack("refresh: the access token")(_refresh(lambda one: one.tokens["access_token"]))
attack("refresh: the access token, dressed up")(_refresh(lambda one: "drr_" + one.tokens["access_token"]))
attack("refresh: ten thousand letters")(_refresh(lambda one: "drr_" + "A" * 10_000))
attack("refresh: bytes")(_refresh(lambda one: "drr_\x00\udcff".encode("utf-8", "replace").decode()))


@attack("refresh: twice, and the family is over")
async def _(at: Attacked) -> str | None:
    client = await at.login()
    first = client.tokens["refresh_token"]
    await client.refresh()
    newest = client.tokens
    if (again := await client.refresh(first)).status == 200:
        return _said(again)
    if (left := await client.refresh(newest["refresh_token"])).status == 200:
        return _said(left)
    return await at.opens(newest["access_token"])


@attack("refresh: five at once")
async def _(at: Attacked) -> str | None:
    client = await at.login()
    token = client.tokens["refresh_token"]
    replies = await asyncio.gather(*(client.refresh(token) for _ in range(5)))
    good = [reply.status for reply in replies].count(200)
    return None if good <= 1 else f"{good} successors of one token"


@attack("refresh: less is not more the next time, where a person allowed only reading")
async def _(at: Attacked) -> str | None:
    client = await at.login(do="read")
    await client.refresh(scope="tools:read")
    reply = await client.refresh()
    return None if reply.value["scope"] == "tools:read" else _said(reply)


@attack("refresh: at another installation")
async def _(at: Attacked) -> str | None:
    reply = await (await at.login()).refresh(at=at.elsewhere)
    return _said(reply) if reply.status == 200 else None


@attack("scope: a code brings no more than was allowed, whatever the client asks for it")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    reply = await client.redeem(await client.allowed(at.bob, do="read"), scope="tools:read tools:write")
    if reply.status == 200 and reply.value["scope"] != "tools:read":
        return _said(reply)
    return await at.calls(client, "mcp_mail_send")


@attack("scope: who asked only to read gets no more from a person who presses everything")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    reply = await at.bob.answer(client.query(scope="tools:read"), do="write", use="all")
    await client.redeem(answer_of(reply)["code"])
    return await at.calls(client, "mcp_mail_send")


# An access token at another place


def _elsewhere(of: str, path: str, method: str = "POST", **headers: str) -> Attack:
    async def run(at: Attacked) -> str | None:
        token = getattr(at, of).tokens["access_token"]
        if method == "POST":
            return await at.opens(token, path, **headers)
        reply = await at.raw(method, path, headers={"Authorization": f"Bearer {token}", **headers})
        return None if reply.status in (401, 403, 404, 405) else _said(reply)

    return run


each(
    "audience: of one connector at",
    lambda path: _elsewhere("mail", path),
    {
        "all": "/mcp",
        "all with a slash": "/mcp/",
        "another": "/mcp/files",
        "another by steps": "/mcp/mail/../files",
        "another by encoded steps": "/mcp/mail%2f..%2ffiles",
        "another by encoded dots": "/mcp/mail/%2e%2e/files",
        "another by a query": "/mcp/files?/mcp/mail",
        "another by parameters": "/mcp/files;/mcp/mail",
        "other letters": "/mcp/MAIL",
        "more slashes": "//mcp/mail",
        "something below": "/mcp/mail/x",
        "a whole address": "/http://127.0.0.1/mcp/mail",
        "a call by REST": "/api/call",
        "messages by REST": "/api/messages",
        "introspection": "/oauth/introspect",
        "a new key": "/api/users/bob/keys",
        "who approves": "/api/approvals/x/answer",
        "consent": "/oauth/authorize",
        "signing out": "/sign-out",
    },
)
each(
    "audience: of everything at",
    lambda path: _elsewhere("full", path, "GET"),
    {
        "one's own page": "/api/me",
        "connectors": "/api/connectors",
        "clients": "/api/clients",
        "the trail": "/api/audit",
        "figures": "/metrics",
        "the console": "/clients",
        "the first page": "/",
        "settings": "/api/settings",
        "consent": "/oauth/authorize",
    },
)
attack("audience: of everything at one connector")(_elsewhere("full", "/mcp/mail"))
attack("audience: by another name of this machine")(
    lambda at: _elsewhere("full", "/mcp", Host=f"localhost:{urlsplit(at.live.url).port}")(at)
)
attack("audience: by another port")(_elsewhere("full", "/mcp", Host="127.0.0.1:1"))


@attack("audience: at another installation")
async def _(at: Attacked) -> str | None:
    reply = await at.full.ask(at=at.elsewhere)
    return _said(reply) if reply.status != 401 else None


@attack("audience: as the key of a console")
async def _(at: Attacked) -> str | None:
    for word in (at.full.tokens["access_token"], at.full.tokens["refresh_token"]):
        reply = await asked(at.live, "POST", "/sign-in", data={"key": word})
        if "Set-Cookie" in reply.headers:
            return _said(reply)
    return None


def _carried(make: Callable[[str], dict[str, Any]], path: str = "/mcp") -> Attack:
    async def run(at: Attacked) -> str | None:
        facts = make(at.full.tokens["access_token"])
        reply = await at.raw("POST", path, **facts)
        return _said(reply) if reply.status not in (400, 401, 403) else None

    return run


attack("token: in the address")(_carried(lambda word: {"params": {"access_token": word}}))
attack("token: in a form")(_carried(lambda word: {"data": {"access_token": word}}))
attack("token: in a cookie")(_carried(lambda word: {"headers": {"Cookie": f"dragoman_session={word}"}}))
attack("token: as a password")(
    _carried(lambda word: {"headers": {"Authorization": "Basic " + b64encode(f":{word}".encode()).decode()}})
)
attack("token: by DPoP")(_carried(lambda word: {"headers": {"Authorization": f"DPoP {word}"}}))
attack("token: twice")(
    _carried(lambda word: {"headers": [("Authorization", f"Bearer {word}"), ("Authorization", "Bearer x")]})
)
attack("token: from a page of another site")(
    _carried(lambda word: {"headers": {"Authorization": f"Bearer {word}", "Origin": "https://evil.example"}})
)
attack("token: the refresh token")(lambda at: at.opens(at.full.tokens["refresh_token"]))
attack("token: the client's id")(lambda at: at.opens(at.full.id))
attack("token: a part")(lambda at: at.opens(at.full.tokens["access_token"][:-20]))
attack("token: two in one")(lambda at: at.opens(at.full.tokens["access_token"] + ",x"))


@attack("token: the id of what was allowed, which lists show")
async def _(at: Attacked) -> str | None:
    for key in await at.live.hub.clients.list():
        for word in (key.id, key.hash, "drk_" + key.hash[:43]):
            if got := await at.opens(word):
                return got
    return None


# A token that somebody wrote


_REGISTRY = jws.JWSRegistry(algorithms=["ES256"], strict_check_header=False)


def _text(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _parts(at: Attacked) -> tuple[dict[str, Any], dict[str, Any], str]:
    head, body, signature = at.full.tokens["access_token"].split(".")
    read = [json.loads(urlsafe_b64decode(part + "==")) for part in (head, body)]
    return read[0], read[1], signature


def _changed(header: Mapping[str, Any] | None = None, signature: str | None = None, **claims: Any) -> Attack:
    """A good token with other words, and the signature as it was or another."""

    async def run(at: Attacked) -> str | None:
        head, body, signed = _parts(at)
        made = f"{_text({**head, **(header or {})})}.{_text({**body, **claims})}"
        return await at.opens(f"{made}.{signed if signature is None else signature}")

    return run


for spelling in ("none", "None", "NONE", "nOnE", ""):
    attack(f"forged: algorithm {spelling!r}")(_changed({"alg": spelling}, ""))
attack("forged: algorithm none with a signature")(_changed({"alg": "none"}))
attack("forged: no signature")(_changed(signature=""))
attack("forged: a signature of zeros")(_changed(signature=_text(bytes(64))))
attack("forged: a signature of ones")(_changed(signature=_text(b"\xff" * 64)))
attack("forged: a later end")(_changed(exp=2**40))
attack("forged: another person")(_changed(sub="owner"))
attack("forged: another audience")(_changed(aud=["x", "y"]))
attack("forged: another scope")(_changed(scope="tools:read tools:write admin"))
attack("forged: a key by its address")(_changed({"jku": "https://evil.example/jwks"}))
attack("forged: not checked at all")(_changed({"crit": ["exp"], "b64": False}, ""))


def _hmac(word: Callable[[dict[str, Any]], bytes], name: str = "HS256") -> Attack:
    """Signed with what everybody knows."""

    async def run(at: Attacked) -> str | None:
        head, body, _ = _parts(at)
        made = f"{_text({**head, 'alg': name})}.{_text({**body, 'exp': 2**40})}"
        signature = hmac(word(at.public), made.encode(), sha256).digest()
        return await at.opens(f"{made}.{_text(signature)}")

    return run


def _pem(public: dict[str, Any]) -> bytes:
    return ECKey.import_key(public).as_pem(private=False)


attack("forged: HMAC with the public key as PEM")(_hmac(_pem))
attack("forged: HMAC with the public key as JSON")(_hmac(lambda public: json.dumps(public).encode()))
attack("forged: HMAC with the name of the key")(_hmac(lambda public: public["kid"].encode()))
attack("forged: HMAC with nothing")(_hmac(lambda public: b""))
attack("forged: HMAC that says ES256")(_hmac(_pem, "ES256"))


def _own(header: Mapping[str, Any] | None = None, *, shows: bool = False) -> Attack:
    """Signed with a key of who attacks."""

    async def run(at: Attacked) -> str | None:
        head, body, _ = _parts(at)
        key = own_key(at.public)
        head |= {**(header or {}), **({"jwk": key.as_dict(private=False)} if shows else {})}
        head = {name: value for name, value in head.items() if value is not None}
        return await at.opens(jwt.encode(head, {**body, "exp": 2**40}, key, registry=_REGISTRY))

    return run


attack("forged: another key of the same name")(_own())
attack("forged: another key that it brings along")(_own(shows=True))
attack("forged: another key of another name")(_own({"kid": "drg-0000000000000000"}))
attack("forged: a key that is a path")(_own({"kid": "../../../../dev/null"}))
attack("forged: a key that is SQL")(_own({"kid": "x' UNION SELECT '"}))
attack("forged: a key without name")(_own({"kid": None}))
attack("forged: a key of ten thousand letters")(_own({"kid": "k" * 10_000}))
for label, word in {"a list": ["x"], "a number": 7, "an object": {"a": 1}}.items():
    attack(f"forged: a key that is {label}")(_changed({"kid": word}))


def _signed(header: Mapping[str, Any] | None = None, *, to: str = "/mcp", **claims: Any) -> Attack:
    """Really signed by us, but nothing that we would give out."""

    async def run(at: Attacked) -> str | None:
        tokens = at.live.hub.authenticator.access_tokens
        assert tokens is not None
        head, body, _ = _parts(at)
        facts = {name: _placed(at, value) for name, value in claims.items()}
        key = await tokens.signing.current()
        made = jwt.encode({**head, **(header or {})}, {**body, **facts}, key, registry=_REGISTRY)
        return await at.opens(made, to)

    return run


attack("forged: no access token by its type")(_signed({"typ": "JWT"}))
attack("forged: an identity by its type")(_signed({"typ": "id+jwt"}))
attack("forged: of another issuer")(_signed(iss="https://evil.example"))
attack("forged: for another audience that is asked for")(_signed(aud="URL/mcp/files", to="/mcp/files"))
attack("forged: for another client")(_signed(client_id="dcr_other"))
attack("forged: of a login that there is not")(_signed(grant="cli_0000000000000000"))
attack("forged: over for more than the clocks may differ")(_signed(exp=int(time.time()) - 61))
for label, word in {
    "dots": "..",
    "a header": "e30.e30.e30",
    "words": "a.b.c",
    "a megabyte": "a." + "b" * 60_000 + ".c",
}.items():
    attack(f"forged: {label}")(lambda at, word=word: at.opens(word))


# What was allowed


attack("grant: a tool that changes something, by who may read")(
    lambda at: at.calls(at.reader, "mcp_mail_send")
)
attack("grant: a tool of another connector")(lambda at: at.calls(at.reader, "mcp_files_echo"))
attack("grant: a changing tool of another connector")(lambda at: at.calls(at.reader, "mcp_files_send"))
attack("grant: a tool of another connector, at the address of one")(
    lambda at: at.calls(at.mail, "mcp_files_echo")
)
attack("grant: a tool of the installation")(lambda at: at.calls(at.reader, "add_connector"))


@attack("grant: nothing else is listed")
async def _(at: Attacked) -> str | None:
    wrong = [name for name in await at.reader.tools() if "files" in name or name.endswith("_send")]
    wrong += [name for name in await at.mail.tools() if "files" in name]
    return str(wrong) if wrong else None


def _member(**choice: Any) -> Attack:
    """`ann` has no connector `files`, so whatever she allows does not reach it."""

    async def run(at: Attacked) -> str | None:
        reply = await at.ann.answer(at.fresh().query(), **choice)
        if reply.status != 303 or "code" not in answer_of(reply):
            return None
        client = at.fresh()
        reply = await at.ann.answer(client.query(), **choice)
        await client.redeem(answer_of(reply)["code"])
        return await at.calls(client, "mcp_files_echo") or (
            str(await client.tools()) if "files" in str(await client.tools()) else None
        )

    return run


attack("grant: everything of somebody who has little")(_member(use="all"))
attack("grant: what the giver has not, beside what they have")(
    _member(use="chosen", connector=["mail", "files"])
)
attack("grant: only what the giver has not")(_member(use="chosen", connector="files"))
attack("grant: capabilities in the form")(_member(use="all", capabilities="mcp_files", role="admin"))


@attack("grant: the address of a connector that the giver has not")
async def _(at: Attacked) -> str | None:
    client = at.fresh(resource="/mcp/files")
    reply = await at.ann.answer(client.query())
    if "Location" not in reply.headers or "code" not in answer_of(reply):
        return None
    await client.redeem(answer_of(reply)["code"])
    return await at.calls(client, "mcp_files_echo")


@attack("grant: what is not said is the least")
async def _(at: Attacked) -> str | None:
    client = at.fresh()
    await client.redeem(await client.allowed(at.bob, do="everything", period="ever"))
    (key, *_) = await at.live.hub.clients.list(user="bob")
    if key.expires_at is None or key.expires_at > datetime.now(UTC) + timedelta(hours=1):
        return str(key.expires_at)
    return await at.calls(client, "mcp_mail_send")


@attack("grant: after it was revoked")
async def _(at: Attacked) -> str | None:
    client = await at.login()
    (key, *_) = await at.live.hub.clients.list(user="bob")
    await at.live.hub.clients.revoke(key.id)
    if (reply := await client.refresh()).status == 200:
        return _said(reply)
    return await at.opens(client.tokens["access_token"])


@attack("grant: after its end")
async def _(at: Attacked) -> str | None:
    client = await at.login()
    (key, *_) = await at.live.hub.clients.list(user="bob")
    await at.expire(key)
    if (reply := await client.refresh()).status == 200:
        return _said(reply)
    return await at.opens(client.tokens["access_token"])


@attack("grant: of somebody who was shut out")
async def _(at: Attacked) -> str | None:
    people = at.live.hub.people
    client = at.fresh()
    code = await client.allowed(at.ann)
    held = await at.login(at.ann)
    await people.update_user("ann", is_active=False)
    try:
        for reply in (await client.redeem(code), await held.refresh()):
            if reply.status == 200:
                return _said(reply)
        if "Location" in (await at.ann.answer(at.fresh().query())).headers:
            return "a consent of nobody"
        return await at.opens(held.tokens["access_token"])
    finally:
        await people.update_user("ann", is_active=True)


@attack("grant: revoked by another person")
async def _(at: Attacked) -> str | None:
    (key, *_) = await at.live.hub.clients.list(user="bob")
    headers = {"Cookie": at.ann.cookie, "X-CSRF-Token": at.ann.csrf}
    await at.raw("POST", f"/clients/{key.id}/revoke", headers=headers)
    await at.raw("DELETE", f"/api/clients/{key.id}", headers={"Authorization": f"Bearer {at.ann_key}"})
    (same,) = [one for one in await at.live.hub.clients.list(user="bob") if one.id == key.id]
    return "revoked" if same.revoked_at else None


@attack("grant: seen by another person")
async def _(at: Attacked) -> str | None:
    keys = [key.id for key in await at.live.hub.clients.list(user="bob")]
    page = await at.raw("GET", "/clients", headers={"Cookie": at.ann.cookie})
    listed = await at.raw("GET", "/api/clients", headers={"Authorization": f"Bearer {at.ann_key}"})
    seen = [key for key in keys if key.encode() in page.body + listed.body]
    return str(seen) if seen else None


# What others ask of tokens


@attack("revocation: by another client")
async def _(at: Attacked) -> str | None:
    client = await at.login()
    for name in ("access_token", "refresh_token"):
        await at.other_app.post({"token": client.tokens[name]}, "/oauth/revoke")
    return None if (await client.ask()).status == 200 else "another client ended the login"


@attack("revocation: says nothing of what there is")
async def _(at: Attacked) -> str | None:
    answers = {
        (reply.status, reply.body)
        for reply in (
            await at.other_app.post({"token": at.full.tokens["refresh_token"]}, "/oauth/revoke"),
            await at.other_app.post({"token": "drr_nothing"}, "/oauth/revoke"),
            await at.other_app.post({"token": "a.b.c"}, "/oauth/revoke"),
        )
    }
    return None if len(answers) == 1 else str(answers)


def _introspect(word: Callable[[Attacked], str]) -> Attack:
    async def run(at: Attacked) -> str | None:
        headers = {"Authorization": f"Bearer {word(at)}"} if word(at) else {}
        form = {"token": at.full.tokens["access_token"], "client_id": at.full.id}
        reply = await at.raw("POST", "/oauth/introspect", headers=headers, data=form)
        return _said(reply) if reply.status == 200 else None

    return run


attack("introspection: by nobody")(_introspect(lambda at: ""))
attack("introspection: by a member")(_introspect(lambda at: at.ann_key))
attack("introspection: by the client")(_introspect(lambda at: at.full.tokens["access_token"]))


# The page on which a person allows


def _forged_consent(**headers: str) -> Attack:
    """A form of another site that the browser sends with the cookie, or without."""

    async def run(at: Attacked) -> str | None:
        given = {"Cookie": at.bob.cookie, "X-CSRF-Token": at.bob.csrf, **headers}
        if given["X-CSRF-Token"] == "ANN":
            given["X-CSRF-Token"] = at.ann.csrf
        reply = await at.raw(
            "POST",
            f"/oauth/authorize?{at.fresh().query()}",
            headers={name: value for name, value in given.items() if value},
            data={"answer": "allow", "use": "all", "do": "write", "period": "always"},
        )
        return _said(reply) if "code" in (answer_of(reply) if "Location" in reply.headers else ()) else None

    return run


attack("consent: without the page's mark")(_forged_consent(**{"X-CSRF-Token": ""}))
attack("consent: with a wrong mark")(_forged_consent(**{"X-CSRF-Token": "x" * 32}))
attack("consent: with the mark of another session")(_forged_consent(**{"X-CSRF-Token": "ANN"}))
attack("consent: from another site")(_forged_consent(Origin="https://evil.example"))
attack("consent: from nowhere")(_forged_consent(Origin="null"))
attack("consent: without a session")(_forged_consent(Cookie=""))
attack("consent: with a session that somebody wrote")(_forged_consent(Cookie="dragoman_session=" + "A" * 200))


@attack("consent: by an address alone")
async def _(at: Attacked) -> str | None:
    query = at.fresh().query() + f"&answer=allow&use=all&csrf={at.bob.csrf}"
    for method in ("GET", "HEAD"):
        reply = await at.raw(
            method, f"/oauth/authorize?{query}",
            headers={"Cookie": at.bob.cookie, "X-HTTP-Method-Override": "POST"},
        )  # fmt: skip
        if "Location" in reply.headers:
            return _said(reply)
    return None


@attack("consent: in the address of the form")
async def _(at: Attacked) -> str | None:
    headers = {"Cookie": at.bob.cookie, "X-CSRF-Token": at.bob.csrf}
    query = at.fresh().query() + "&answer=allow&use=all"
    reply = await at.raw("POST", f"/oauth/authorize?{query}", headers=headers)
    return _said(reply) if "code" in (answer_of(reply) if "Location" in reply.headers else ()) else None


@attack("consent: with a key instead of a session")
async def _(at: Attacked) -> str | None:
    reply = await at.raw(
        "POST", f"/oauth/authorize?{at.fresh().query()}",
        headers={"Authorization": f"Bearer {at.ann_key}"}, data={"answer": "allow", "use": "all"},
    )  # fmt: skip
    return _said(reply) if "code" in (answer_of(reply) if "Location" in reply.headers else ()) else None


@attack("consent: in a frame")
async def _(at: Attacked) -> str | None:
    for query in (at.fresh().query(), at.fresh().query(redirect_uri="https://evil.example/")):
        page = await at.bob.look(query)
        policy = page.headers.get("Content-Security-Policy", "")
        if "frame-ancestors 'none'" not in policy or page.headers.get("X-Frame-Options") != "DENY":
            return str(page.headers)
        if (
            "script-src" not in policy
            or "'unsafe-inline'" in policy.partition("script-src")[2].partition(";")[0]
        ):
            return policy
    return None


@attack("consent: kept by a cache")
async def _(at: Attacked) -> str | None:
    page = await at.bob.look(at.fresh().query())
    kept = page.headers.get("Cache-Control", "")
    return (
        None if "no-store" in kept or "no-cache" in kept or "private" in kept else kept or "no Cache-Control"
    )


@attack("consent: a session that was stolen before its person signed out")
async def _(at: Attacked) -> str | None:
    person = await Person.signed_in(at.live, at.ann_key)
    stolen = replace(person)
    headers = {"Cookie": person.cookie, "X-CSRF-Token": person.csrf}
    await at.raw("POST", "/sign-out", headers=headers)
    reply = await stolen.answer(at.fresh().query())
    if "Location" in reply.headers and "code" in answer_of(reply):
        return _said(reply)
    page = await at.raw("GET", "/clients", headers=headers)
    return _said(page) if page.status == 200 else None


@attack("consent: a session whose key was revoked")
async def _(at: Attacked) -> str | None:
    key, word = await at.live.hub.people.add_key("lost", user="ann", scopes=("read", "call", "manage"))
    person = await Person.signed_in(at.live, word)
    await at.live.hub.people.revoke_key(key.id)
    reply = await person.answer(at.fresh().query())
    return _said(reply) if "code" in (answer_of(reply) if "Location" in reply.headers else ()) else None


@attack("consent: by a key that is not a person's")
async def _(at: Attacked) -> str | None:
    _, word = await at.live.hub.people.add_key("agent", user="ann", way="agent", scopes=("read", "call"))
    reply = await asked(at.live, "POST", "/sign-in", data={"key": word, "next": "/clients"})
    if reply.status != 303:
        return None
    person = await Person.signed_in(at.live, word)
    reply = await person.answer(at.fresh().query())
    return _said(reply) if "code" in (answer_of(reply) if "Location" in reply.headers else ()) else None


def _named(name: Any, wrong: str, **metadata: Any) -> Attack:
    """The name of a client on the pages of the console."""

    async def run(at: Attacked) -> str | None:
        made = await at.register(client_name=name, **metadata)
        client = Client(at.live, id=made.value["client_id"])
        page = await at.bob.look(client.query())
        await client.log_in(at.bob)
        listed = await at.raw("GET", "/clients", headers={"Cookie": at.bob.cookie})
        both = (page.body + listed.body).decode()
        return both[max(both.index(wrong) - 80, 0) :][:200] if wrong in both else None

    return run


attack("name: a script")(_named("<script>evil()</script>", "<script>evil"))
attack("name: out of an attribute")(_named('"><img src=x onerror=evil()>', "<img src=x"))
attack("name: out of a quote")(_named("' onload='evil()", "' onload='evil"))
attack("name: a template")(_named("{{ 7919 * 7919 }}", "62710561"))
attack("name: letters that turn others around")(_named("Claude\u202egpj.exe", "\u202e"))
attack("name: letters that nobody sees")(_named("Cla\u200bude", "Cla\u200bude"))
attack("name: lines")(_named("Claude\n\n\nallowed by Dragoman", "Claude\n"))
attack("name: a thousand letters")(_named("A" * 1000, "A" * 81))
attack("name: a picture of its own")(
    _named(
        "Logo", "evil.example", logo_uri="https://evil.example/logo.png", client_uri="https://evil.example/"
    )
)


# Links that lead elsewhere


def _next(where: str) -> Attack:
    async def run(at: Attacked) -> str | None:
        headers = {"Cookie": at.bob.cookie, "X-CSRF-Token": at.bob.csrf}
        for reply in (
            await at.raw("GET", "/sign-in?" + urlencode({"next": where}), headers={"Cookie": at.bob.cookie}),
            await asked(at.live, "POST", "/sign-in", data={"key": at.ann_key, "next": where}),
        ):
            place = reply.headers.get("Location", "/")
            if not place.startswith("/") or place.startswith(("//", "/\\", "/%5C%5C")):
                return _said(reply)
        stranger = await Person.signed_in(at.live, at.ann_key)
        headers = {"Cookie": stranger.cookie, "X-CSRF-Token": stranger.csrf}
        reply = await at.raw("POST", "/sign-out?" + urlencode({"next": where}), headers=headers)
        place = reply.headers.get("hx-redirect", "/")
        return None if place.startswith("/sign-in") else place

    return run


each(
    "open redirect",
    _next,
    {
        "an address": "https://evil.example/",
        "two slashes": "//evil.example/",
        "three slashes": "///evil.example/",
        "a backslash": "/\\evil.example/",
        "two backslashes": "\\\\evil.example/",
        "a tab between": "/\t/evil.example/",
        "a line": "/\r\nLocation: https://evil.example/",
        "a script": "javascript:alert(1)",
        "a user": "@evil.example",
        "no slash": "evil.example",
        "a scheme without slashes": "https:evil.example",
        "a bracket": "http://[evil",
    },
)


# Documents of clients


def _document(path: str, document: Any = None, client_id: str | None = None) -> Attack:
    """`HERE` and `INSIDE` stand for a server that may be reached and one that may not."""

    def placed(at: Attacked, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("HERE", at.documents.url).replace("INSIDE", at.inside.url)
        if isinstance(value, dict):
            return {name: placed(at, one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return value

    async def run(at: Attacked) -> str | None:
        at.inside.asked.clear()
        known = {"client_id": "HERE" + path, "redirect_uris": [CALLBACK], "client_name": "Document"}
        at.documents.documents[path] = placed(at, known if document is None else document)
        at.inside.documents[path] = {**known, "client_id": at.inside.url + path}
        query = at.fresh().query(client_id=placed(at, client_id or "HERE" + path))
        for reply in (await at.bob.look(query), await at.bob.answer(query)):
            if reply.status != 422:
                return _said(reply)
        return f"it asked inside: {at.inside.asked}" if at.inside.asked else None

    return run


_GOOD: dict[str, Any] = {"redirect_uris": [CALLBACK], "client_name": "Document"}
each(
    "document",
    lambda facts: _document(*facts),
    {
        "inside": ("/in.json", None, "INSIDE/in.json"),
        "inside by https": ("/ins.json", None, "https://127.0.0.2/ins.json"),
        "of a cloud": ("/x", None, "http://169.254.169.254/latest/meta-data/"),
        "of a cloud by https": ("/x", None, "https://169.254.169.254/latest/meta-data/"),
        "of a network around": ("/x", None, "https://10.0.0.1/client.json"),
        "of another network around": ("/x", None, "https://192.168.0.1/client.json"),
        "by IPv6 of this machine": ("/x", None, "https://[::1]/client.json"),
        "by IPv4 in IPv6": ("/x", None, "https://[::ffff:10.0.0.1]/client.json"),
        "by a number": ("/x", None, "https://2130706434/client.json"),
        "http on another machine": ("/x", None, "http://app.example/client.json"),
        "a file": ("/x", None, "file:///etc/passwd"),
        "at the root": ("/", None, "HERE/"),
        "with steps": ("/a/../b", None, "HERE/a/../b"),
        "with a fragment": ("/fr.json", None, "HERE/fr.json#x"),
        "with a user": ("/us.json", None, "http://user@127.0.0.1/us.json"),
        "that sends to inside": ("/re.json", "INSIDE/re.json", None),
        "that sends elsewhere": ("/re2.json", "HERE/in.json", None),
        "that is of another client": ("/ot.json", {**_GOOD, "client_id": "HERE/other.json"}, None),
        "of no client": ("/no.json", _GOOD, None),
        "of 10 MB": ("/big.json", b'{"x":"' + b"x" * 10_000_000 + b'"}', None),
        "that is deep": ("/deep.json", b"[" * 60_000, None),
        "that is no JSON": ("/txt.json", b"<html>", None),
        "that is a list": ("/list.json", b"[]", None),
        "without redirects": ("/nored.json", {"client_id": "HERE/nored.json"}, None),
        "with a script for redirect": (
            "/js.json", {"client_id": "HERE/js.json", "redirect_uris": ["javascript:alert(1)"]}, None,
        ),
        "with other redirects": (
            "/red.json", {"client_id": "HERE/red.json", "redirect_uris": ["https://evil.example/"]}, None,
        ),
        "with a secret way": (
            "/key.json",
            {**_GOOD, "client_id": "HERE/key.json", "token_endpoint_auth_method": "private_key_jwt"}, None,
        ),
        "that is not there": ("/gone.json", b"", "HERE/nothing-here.json"),
    },
)  # fmt: skip


@attack("document: that never comes")
async def _(at: Attacked) -> str | None:
    started = time.monotonic()
    got = await _document("/slow.json", {"slow": True})(at)
    took = time.monotonic() - started
    return got or (None if took < patient(14) else f"{took:.0f} s")


# Introducing oneself


def _registration(**metadata: Any) -> Attack:
    async def run(at: Attacked) -> str | None:
        reply = await at.register(**metadata)
        return _said(reply) if reply.status != 400 or "error" not in reply.value else None

    return run


each(
    "registration",
    lambda metadata: _registration(**metadata),
    {
        "no redirect": {"redirect_uris": []},
        "a redirect that is no list": {"redirect_uris": CALLBACK},
        "a redirect that is no word": {"redirect_uris": [7]},
        "a script": {"redirect_uris": ["javascript:alert(1)"]},
        "a script in other letters": {"redirect_uris": ["JavaScript:alert(1)"]},
        "a script behind a good one": {"redirect_uris": [CALLBACK, "javascript:alert(1)"]},
        "a script with a tab": {"redirect_uris": ["java\tscript:alert(1)"]},
        "a document": {"redirect_uris": ["data:text/html,x"]},
        "a file": {"redirect_uris": ["file:///etc/passwd"]},
        "http elsewhere": {"redirect_uris": ["http://app.example/cb"]},
        "a fragment": {"redirect_uris": ["https://app.example/cb#x"]},
        "a user": {"redirect_uris": ["https://me:pw@app.example/cb"]},
        "a wildcard host of letters": {"redirect_uris": ["https://"]},
        "a line": {"redirect_uris": ["https://app.example/cb\r\nx: y"]},
        "a thousand redirects": {"redirect_uris": [f"https://app.example/{n}" for n in range(1000)]},
        "a long redirect": {"redirect_uris": ["https://app.example/" + "x" * 5000]},
        "a view of a page": {"redirect_uris": ["view-source:https://app.example"]},
        "an intent": {"redirect_uris": ["intent://scan/#Intent;end"]},
        "implicit": {"grant_types": ["implicit"]},
        "a password": {"grant_types": ["password"]},
        "a token at once": {"response_types": ["token"]},
        "grants that are no list": {"grant_types": "authorization_code"},
    },
)


@attack("registration: a secret, a scope and rights that nobody gave")
async def _(at: Attacked) -> str | None:
    reply = await at.register(
        client_secret="mine",
        client_id="dcr_mine",
        scope="admin",
        token_endpoint_auth_method="client_secret_basic",
    )
    told = reply.value
    wrong = {"client_secret", "scope"} & told.keys() or told["client_id"] == "dcr_mine"
    return str(told) if wrong or told["token_endpoint_auth_method"] != "none" else None


def _bare_registration(**options: Any) -> Attack:
    async def run(at: Attacked) -> str | None:
        reply = await at.raw("POST", "/oauth/register", **options)
        return _said(reply) if reply.status < 400 or reply.status >= 500 else None

    return run


attack("registration: nothing")(_bare_registration())
attack("registration: a list")(_bare_registration(json=[]))
attack("registration: a megabyte")(
    _bare_registration(json={"redirect_uris": [CALLBACK], "x": "x" * 1_000_000})
)
attack("registration: deep")(_bare_registration(data=b"[" * 60_000))
attack("registration: from a page of another site")(
    _bare_registration(json={"redirect_uris": [CALLBACK]}, headers={"Origin": "https://evil.example"})
)


@attack("registration: a flood")
async def _(at: Attacked) -> str | None:
    statuses = [(await Client(at.live).register(redirect_uris=[])).status for _ in range(40)]
    if 429 not in statuses:
        return f"{len(statuses)} in a row"
    other = await at.register()
    return None if other.status == 201 else "one who floods shuts the others out"


# What there is


def _alike(ask: Callable[[Attacked, str], Awaitable[Reply]], *names: str) -> Attack:
    """What is there, and what is not, are answered to the letter alike."""

    async def run(at: Attacked) -> str | None:
        seen = set[str]()
        for name in names:
            reply = await ask(at, name)
            kept = {
                key: value
                for key, value in reply.headers.items()
                if key.lower() not in ("date", "x-request-id")
            }
            text = f"{reply.status} {sorted(kept.items())} {reply.body.decode()}"
            seen.add(text.replace(name, "NAME").replace(quote(name, safe=""), "NAME"))
        return None if len(seen) == 1 else "\n".join(seen)

    return run


_NAMES = ("mail", "nope")
attack("names: by metadata")(
    _alike(lambda at, name: at.raw("GET", f"/.well-known/oauth-protected-resource/mcp/{name}"), *_NAMES)
)
attack("names: by who may come in")(_alike(lambda at, name: at.raw("POST", f"/mcp/{name}", json={}), *_NAMES))
attack("names: by a wrong token")(
    _alike(lambda at, name: at.mcp(at.full.tokens["access_token"], f"/mcp/{name}"), *_NAMES)
)
attack("names: by HEAD")(
    _alike(lambda at, name: at.raw("HEAD", f"/.well-known/oauth-protected-resource/mcp/{name}"), *_NAMES)
)
attack("names: by OPTIONS")(_alike(lambda at, name: at.raw("OPTIONS", f"/mcp/{name}"), *_NAMES))


@attack("names: a connector that a person has not looks like one that there is not")
async def _(at: Attacked) -> str | None:
    seen = set[str]()
    for name in ("files", "nopes"):
        page = await at.ann.look(at.fresh(resource=f"/mcp/{name}").query(code_challenge="a" * 43))
        text = page.body.decode().replace(name, "NAME")
        seen.add(re.sub(r'csrf[^"]*"[^"]*"|\d\d:\d\d', "", text))
    return None if len(seen) == 1 else "the pages differ"


def _nothing(path: str) -> Attack:
    async def run(at: Attacked) -> str | None:
        reply = await at.raw("GET", path)
        return None if reply.status == 404 else _said(reply)

    return run


each(
    "names: nothing is offered at",
    _nothing,
    {
        "REST": "/.well-known/oauth-protected-resource/api",
        "a longer word": "/.well-known/oauth-protected-resource/mcpx",
        "an OpenID provider below": "/.well-known/openid-configuration/api",
        "a server below": "/.well-known/oauth-authorization-server/mcp",
        "far below": "/.well-known/oauth-protected-resource/mcp/" + "a/" * 20,
    },
)


@attack("names: none are in what everybody may read")
async def _(at: Attacked) -> str | None:
    for path in (
        "oauth-authorization-server",
        "openid-configuration",
        "oauth-protected-resource",
        "oauth-protected-resource/mcp",
    ):
        body = (await at.raw("GET", f"/.well-known/{path}")).body
        if b"mail" in body or b"files" in body or b"bob" in body:
            return body.decode()
    keys = (await at.raw("GET", "/oauth/jwks")).body
    return keys.decode() if b'"d"' in keys else None


# Methods and other sites


def _method(method: str, path: str) -> Attack:
    async def run(at: Attacked) -> str | None:
        form = {
            "grant_type": "refresh_token",
            "client_id": at.full.id,
            "token": at.full.tokens["refresh_token"],
        }
        reply = await at.raw(method, f"{path}?{urlencode(form)}")
        if reply.status < 400 or reply.status >= 500:
            return _said(reply)
        return None if (await at.full.ask()).status == 200 else "it ended a login"

    return run


for word, address in (
    ("GET", "/oauth/token"), ("PUT", "/oauth/token"), ("GET", "/oauth/register"), ("GET", "/oauth/revoke"),
    ("DELETE", "/oauth/register"), ("POST", "/oauth/jwks"), ("TRACE", "/oauth/token"),
    ("GET", "/oauth/introspect"),
):  # fmt: skip
    attack(f"method: {word} {address}")(_method(word, address))


def _other_site(path: str) -> Attack:
    async def run(at: Attacked) -> str | None:
        for method in ("OPTIONS", "GET", "POST"):
            headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
            reply = await at.raw(method, path, headers={**headers, "Cookie": at.bob.cookie})
            allowed = [name for name in reply.headers if name.lower().startswith("access-control-")]
            if allowed:
                return f"{method}: {allowed}"
        return None

    return run


for address in ("/oauth/token", "/oauth/register", "/oauth/authorize", "/mcp", "/clients"):
    attack(f"another site: {address}")(_other_site(address))
