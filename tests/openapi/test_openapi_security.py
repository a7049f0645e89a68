"""Who gets to see a credential, and who does not; what a document may not do."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from echo import Echo, document, open_echo, operation
from pydantic import SecretStr
from yarl import URL

from api.live import open_service
from dragoman import Hub
from dragoman.connections.openapi.request_credentials import ServiceCredentials, check_target
from dragoman.connections.openapi.requests import ServiceRequest
from dragoman.connector import Configuration
from dragoman.errors import InvalidConfig
from servers.hubs import open_hub, quick

pytestmark = pytest.mark.anyio
CANARY = "canary-7f3a9c"
SCHEMES: dict[str, dict[str, Any]] = {
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Token"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
}


def secured(*names: str, **facts: Any) -> dict[str, Any]:
    """A document whose one operation wants these schemes together."""
    return document(
        {"/thing": {"get": operation("get"), "post": operation("open", security=[])}},
        components={"securitySchemes": SCHEMES},
        security=[{name: [] for name in names}],
        **facts,
    )


async def ask(echo: Echo, hub: Hub, made: dict[str, Any], tool: str = "get", **facts: Any) -> Any:
    echo.serve("/openapi.json", made)
    view = await hub.connectors.add("shop", kind="openapi", openapi=echo.url, **quick(**facts))
    assert view.status.state == "connected", view.status.cause
    echo.seen.clear()
    output = await hub.call(f"mcp_shop_{tool}")
    return output, echo.seen[0] if echo.seen else None


@pytest.mark.parametrize(
    ("scheme", "facts", "target", "header", "value"),
    [
        ("query", {"api_key": CANARY}, f"/thing?key={CANARY}", "X-API-Key", None),
        ("header", {"api_key": CANARY}, "/thing", "X-Token", CANARY),
        ("cookie", {"api_key": CANARY}, "/thing", "Cookie", f"sid={CANARY}"),
        ("bearer", {"bearer": CANARY}, "/thing", "Authorization", f"Bearer {CANARY}"),
        ("bearer", {"api_key": CANARY}, "/thing", "Authorization", f"Bearer {CANARY}"),
        ("oauth", {"bearer": CANARY}, "/thing", "Authorization", f"Bearer {CANARY}"),
        ("basic", {"api_key": "me:pass"}, "/thing", "Authorization", "Basic bWU6cGFzcw=="),
        ("header", {"bearer": CANARY}, "/thing", "Authorization", f"Bearer {CANARY}"),
        ("header", {"api_key": CANARY, "api_key_header": "X-Mine"}, "/thing", "X-Mine", CANARY),
        ("header", {"headers": {"X-Token": CANARY}}, "/thing", "X-Token", CANARY),
    ],
)
async def test_a_credential_goes_where_the_document_or_the_connector_says(
    scheme: str, facts: dict[str, Any], target: str, header: str, value: str | None, tmp_path: Path
) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        output, seen = await ask(echo, hub, secured(scheme), **facts)
    assert output.ok
    assert (seen.target, seen.header(header)) == (target, value)


async def test_two_keys_together_come_from_headers_and_the_credential(tmp_path: Path) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        made = secured("query", "header")
        _, seen = await ask(echo, hub, made, api_key=CANARY, headers={"X-Token": "second"})
    assert (seen.target, seen.header("X-Token")) == (f"/thing?key={CANARY}", "second")


@pytest.mark.parametrize("facts", [{"bearer": CANARY}, {"api_key": CANARY}, {"headers": {"X-Token": CANARY}}])
async def test_a_document_cannot_point_credentials_at_another_host(
    facts: dict[str, Any], tmp_path: Path
) -> None:
    async with open_echo() as echo, open_echo() as thief, open_hub(tmp_path) as hub:
        made = secured("bearer", servers=[{"url": thief.url}])
        output, _ = await ask(echo, hub, made, **facts)
        free = await hub.call("mcp_shop_open")
    assert output.error is not None
    assert output.error.code == "needs_auth"
    assert thief.url in (output.error.hint or "")
    assert free.ok  # an operation that needs none is called without
    assert len(thief.seen) == 1
    assert CANARY not in repr(thief.seen)


async def test_nor_can_a_server_of_one_operation_or_path(tmp_path: Path) -> None:
    async with open_echo() as echo, open_echo() as thief, open_hub(tmp_path) as hub:
        elsewhere = [{"url": f"{thief.url}/api"}]
        made = document(
            {
                "/a": {"get": operation("a", servers=elsewhere)},
                "/b": {"get": operation("b"), "servers": elsewhere},
                "/c": {"get": operation("c")},
            }
        )
        await ask(echo, hub, made, "c", bearer=CANARY)
        outputs = [await hub.call(f"mcp_shop_{tool}") for tool in "ab"]
    assert [output.ok for output in outputs] == [True, True]
    assert [seen.target for seen in thief.seen] == ["/api/a", "/api/b"]
    assert CANARY not in repr(thief.seen)
    assert CANARY in repr(echo.seen)


async def test_a_configured_server_is_trusted(tmp_path: Path) -> None:
    async with open_echo() as echo, open_echo() as service, open_hub(tmp_path) as hub:
        made = secured("bearer", servers=[{"url": "https://elsewhere.test/v2"}])
        output, _ = await ask(echo, hub, made, bearer=CANARY, server=f"{service.url}/v2")
    assert output.ok
    assert [(seen.target, seen.header("Authorization")) for seen in service.seen] == [
        ("/v2/thing", f"Bearer {CANARY}")
    ]


async def test_a_file_trusts_nobody_until_a_server_is_named(tmp_path: Path) -> None:
    async with open_echo() as service, open_hub(tmp_path) as hub:
        file = tmp_path / "api.json"
        file.write_bytes(orjson.dumps(secured("bearer", servers=[{"url": service.url}])))
        await hub.connectors.add("shop", kind="openapi", openapi=str(file), bearer=CANARY, **quick())
        refused = await hub.call("mcp_shop_get")
        await hub.connectors.update("shop", server=service.url)
        output = await hub.call("mcp_shop_get")
    assert refused.error is not None
    assert refused.error.code == "needs_auth"
    assert output.ok
    assert len(service.seen) == 1


async def test_a_401_of_a_stranger_says_why_the_credential_was_not_sent(tmp_path: Path) -> None:
    async with open_echo() as echo, open_echo() as stranger, open_hub(tmp_path) as hub:
        stranger.serve_text("/thing", "who are you?", status=401)
        made = document({"/thing": {"get": operation("get")}}, servers=[{"url": stranger.url}])
        output, _ = await ask(echo, hub, made, bearer=CANARY)
    assert output.error is not None
    assert output.error.code == "needs_auth"
    assert "was not sent" in (output.error.hint or "")


async def test_a_redirect_takes_no_credential_to_another_host(tmp_path: Path) -> None:
    async with open_echo() as echo, open_echo() as thief, open_hub(tmp_path) as hub:
        echo.answers["/thing"] = lambda request: web.Response(
            status=307, headers={"Location": f"{thief.url}/x"}
        )
        await ask(echo, hub, secured("bearer"), bearer=CANARY)
        echo.answers["/openapi.json"] = echo.answers["/thing"]
        await asyncio.gather(hub.connectors.refresh("shop"), return_exceptions=True)
    assert thief.seen == []


async def test_an_argument_cannot_take_the_place_of_a_credential(tmp_path: Path) -> None:
    names = [
        {"name": name, "in": place, "schema": {"type": "string"}}
        for name, place in (("x-token", "header"), ("key", "query"))
    ]
    made = document(
        {"/thing": {"get": operation("get", parameters=names, security=[{"header": [], "query": []}])}},
        components={"securitySchemes": SCHEMES},
    )
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        await ask(echo, hub, made, api_key=CANARY)
        echo.seen.clear()
        await hub.call("mcp_shop_get", {"x-token": "mine", "key": "mine"})
    (seen,) = echo.seen
    assert (seen.target, seen.header("X-Token")) == (f"/thing?key={CANARY}", CANARY)


async def test_a_credential_appears_in_no_error_event_or_repr(tmp_path: Path) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        echo.serve("/thing", {"message": f"token {CANARY} is wrong"}, status=401)
        output, _ = await ask(echo, hub, secured("bearer"), bearer=CANARY)
        view = await hub.connectors.get("shop")
        tools = hub.tools.list("shop")
    assert output.error is not None
    assert CANARY not in repr((output, view, tools))


async def test_cookies_of_a_service_are_not_kept(tmp_path: Path) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        echo.answers["/thing"] = lambda request: web.Response(
            text="ok", headers={"Set-Cookie": "who=somebody"}
        )
        await ask(echo, hub, secured("bearer"), bearer=CANARY)
        await hub.call("mcp_shop_get")
    assert [seen.header("Cookie") for seen in echo.seen] == [None, None]


@pytest.mark.parametrize(
    ("target", "is_shown"),
    [
        ("http://api.test/x", True),
        ("https://api.test/x", True),
        ("http://api.test:8080/x", False),
        ("http://api.test.evil.test/x", False),
        ("http://other.test/x", False),
    ],
)
def test_trust_is_of_scheme_host_and_port(target: str, is_shown: bool) -> None:
    configuration = Configuration(kind="openapi", openapi="http://api.test/openapi.json")
    assert ServiceCredentials.of(configuration, {}, {}).may_be_shown_to(URL(target)) is is_shown


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:1", "http://localhost", "http://169.254.169.254", "http://[::1]:2", "http://10.0.0.1"],
)
def test_a_foreign_document_does_not_lead_into_our_own_network(target: str) -> None:
    with pytest.raises(InvalidConfig, match="inside the network"):
        check_target(URL(target), (URL("https://api.example.com"),))
    check_target(URL(target), (URL("http://127.0.0.1:9"),))


def test_a_credential_is_not_in_the_repr_of_its_holder() -> None:
    configuration = Configuration(kind="openapi", openapi="http://api.test", auth={"kind": "bearer"})  # type: ignore[arg-type]
    assert CANARY not in repr(ServiceCredentials.of(configuration, {"auth": SecretStr(CANARY)}, {}))
    assert ServiceRequest("GET", "/").target == "/"


async def test_headers_of_a_client_never_reach_the_service(tmp_path: Path) -> None:
    async with open_echo() as echo, open_service(tmp_path) as live:
        await ask(echo, live.hub, secured())
        echo.seen.clear()
        headers = {"X-Api-Key": CANARY, "Cookie": f"a={CANARY}", "X-Other": CANARY}
        reply = await live.ask("POST", "/api/call", {"tool": "mcp_shop_get"}, **headers)
    assert reply.value["ok"]
    (seen,) = echo.seen
    assert CANARY not in repr(seen)
    assert live.token not in repr(seen)
