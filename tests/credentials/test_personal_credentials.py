"""What users bring: their own alone, asked for before anything is sent, and never shown again."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from api.live import open_service
from dragoman import Caller
from dragoman.errors import InvalidConfig, NotFound
from servers.hubs import open_hub, quick
from servers.processes import HERE, HttpProcess
from servers.toolbox import digest

pytestmark = pytest.mark.anyio
ANN, BOB = Caller(user="ann"), Caller(user="bob")
CANARY = "canary-4d1f08aa"


def values(**given: str) -> dict[str, SecretStr]:
    return {name.replace("_", ":", 1): SecretStr(value) for name, value in given.items()}


def command(**facts: Any) -> dict[str, Any]:
    return quick(command=sys.executable, args=[str(HERE / "stdio_server.py")], **facts)


async def test_each_user_is_known_to_the_server_by_their_own(tmp_path: Path, database_url: str) -> None:
    async with open_hub(tmp_path / "home", database_url=database_url) as hub:
        view = await hub.connectors.add("test", **command(personal=["env:WHO"]), shared=True)
        assert view.status.state == "needs_auth"
        assert view.status.hint == 'hub.credentials.set("test", {"env:WHO": "…"})'
        for caller in (ANN, BOB):
            (wanted,) = await hub.acting_for(caller).credentials.list()
            assert (wanted.state, wanted.wanted, wanted.present) == ("missing", ("env:WHO",), ())
            after = await hub.acting_for(caller).credentials.set(
                "test", values(env_WHO=f"{CANARY}-{caller.user}")
            )
            assert (after.state, after.present) == ("ready", ("env:WHO",))
            assert CANARY not in repr(after)
        for caller in (ANN, BOB):
            found = await hub.acting_for(caller).call("mcp_test_environment", {})
            assert found.result["digests"]["WHO"] == digest(f"{CANARY}-{caller.user}")
            assert CANARY not in str(found), "the server has it, and nobody is shown it"
        refused = await hub.connectors.connect("test")
        assert refused.status.state == "needs_auth", "what others brought serves nobody else"
    for file in (tmp_path / "home").rglob("*"):
        if file.is_file():
            assert CANARY.encode() not in file.read_bytes()


async def test_a_change_touches_ones_own_connection_only(tmp_path: Path, database_url: str) -> None:
    async with open_hub(tmp_path, database_url=database_url) as hub:
        await hub.connectors.add("test", **command(personal=["env:WHO"]), shared=True, connect=False)
        for caller in (ANN, BOB):
            await hub.acting_for(caller).credentials.set("test", values(env_WHO=caller.user))

        async def pid(caller: Caller) -> int | None:
            return (await hub.acting_for(caller).connectors.get("test")).status.pid

        before = await pid(ANN), await pid(BOB)
        assert None not in before
        await hub.acting_for(ANN).credentials.set("test", values(env_WHO="ann the second"))
        assert (await hub.acting_for(ANN).call("mcp_test_environment", {})).result["digests"][
            "WHO"
        ] == digest("ann the second")
        assert await pid(ANN) != before[0]
        await hub.acting_for(ANN).credentials.remove("test")
        assert (await hub.acting_for(ANN).connectors.get("test")).status.state == "needs_auth"
        output = await hub.acting_for(ANN).call("mcp_test_environment", {})
        assert output.error
        assert (output.error.code, output.error.hint) == (
            "needs_auth",
            'hub.credentials.set("test", {"env:WHO": "…"})',
        )
        assert await pid(BOB) == before[1]


async def test_a_refused_token_says_how_to_bring_another(tmp_path: Path, database_url: str) -> None:
    with HttpProcess(tmp_path, "--token", "right-token") as server:
        async with open_hub(tmp_path, database_url=database_url) as hub:
            await hub.connectors.add("test", **quick(url=server.url, personal=["auth"]), shared=True)
            assert server.state()["seen"] == [], "nothing is sent before there is a credential"
            wrong = await hub.acting_for(ANN).credentials.set("test", values(auth="wrong-token"))
            assert (wrong.state, wrong.hint) == ("refused", 'hub.credentials.set("test", {"auth": "…"})')
            right = await hub.acting_for(ANN).credentials.set("test", values(auth="right-token"))
            assert right.state == "ready"
            assert (await hub.acting_for(ANN).call("mcp_test_echo", {"text": "x"})).ok


@pytest.mark.parametrize(
    ("facts", "given", "expected"),
    [
        ({"personal": ["auth"]}, {"header_X": "x"}, "takes auth"),
        ({"personal": ["auth"]}, {"auth": ""}, "empty"),
        ({"personal": ["auth"]}, {"auth": "two\nlines"}, "cannot be sent"),
        ({"personal": ["auth"]}, {}, "at least one"),
        ({"auth": {"kind": "oauth"}}, {"auth": "x"}, "takes an authorisation"),
        ({"auth": {"kind": "oauth"}}, {"oauth": "{}"}, "takes an authorisation"),
        ({}, {"auth": "x"}, "takes no credential"),
    ],
)
async def test_what_a_connector_does_not_take_is_refused_with_what_it_takes(
    tmp_path: Path, facts: dict[str, Any], given: dict[str, str], expected: str
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("test", url="http://127.0.0.1:9/mcp", **facts, shared=True, connect=False)
        with pytest.raises(InvalidConfig, match=expected):
            await hub.acting_for(ANN).credentials.set("test", values(**given))
        with pytest.raises(NotFound):
            await hub.acting_for(ANN).credentials.set("other", values(auth="x"))
        if facts.get("auth") is None:
            with pytest.raises(InvalidConfig):
                await hub.acting_for(ANN).credentials.authorize("test", address="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"personal": ["auth"], "isolation": "shared"}, "share one connection"),
        ({"auth": {"kind": "oauth"}, "isolation": "shared"}, "share one connection"),
        ({"personal": ["env:X"]}, "auth or header"),
        ({"personal": ["oauth"]}, "is named"),
        ({"personal": ["header:"]}, "is named"),
        ({"personal": ["auth"], "auth": {"kind": "oauth"}}, "authorises"),
        ({"personal": ["auth"], "bearer": "for all"}, "for all"),
        ({"auth": {"kind": "magic"}}, "auth.kind"),
        ({"auth": {"kind": "oauth", "flow": "client_credentials"}}, "need a client"),
    ],
)
async def test_a_connector_that_cannot_be_is_refused(
    tmp_path: Path, facts: dict[str, Any], expected: str
) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidConfig, match=expected):
            await hub.connectors.add("test", url="http://127.0.0.1:9/mcp", **facts, connect=False)


async def test_the_credential_of_ones_own_connector_is_replaced(tmp_path: Path, sqlite_url: str) -> None:
    with HttpProcess(tmp_path, "--token", "second") as server:
        async with open_hub(tmp_path, database_url=sqlite_url) as hub:
            view = await hub.connectors.add("test", **quick(url=server.url, bearer="first"))
            assert view.status.state == "needs_auth"
            await hub.credentials.set("test", values(auth="second"))
            assert (await hub.call("mcp_test_echo", {"text": "x"})).ok


async def test_everything_by_rest_and_no_value_comes_back(tmp_path: Path, database_url: str) -> None:
    async with open_service(tmp_path, database_url=database_url) as live:
        await live.hub.connectors.add("test", **command(personal=["env:WHO"]), shared=True, connect=False)
        listed = await live.ask("GET", "/api/credentials")
        assert [one["state"] for one in listed.value["credentials"]] == ["missing"]
        put = await live.ask("PUT", "/api/credentials/test", {"values": {"env:WHO": CANARY}})
        assert (put.status, put.value["state"]) == (200, "ready")
        wrong = await live.ask("PUT", "/api/credentials/test", {"values": {"env:OTHER": CANARY}})
        assert (wrong.status, wrong.value["code"]) == (422, "invalid_config")
        odd = await live.ask("PUT", "/api/credentials/test", {"values": CANARY})
        assert odd.status == 422
        shown = await live.ask("GET", "/api/connectors/test")
        assert (await live.ask("DELETE", "/api/credentials/test")).status == 204
        assert (await live.ask("GET", "/api/credentials/none")).status == 404
        for reply in (put, wrong, odd, shown):
            assert CANARY not in reply.body.decode()
        actions = [entry.action for entry in await live.hub.audit.list()]
        assert {"credential.set", "credential.removed"} <= set(actions)
