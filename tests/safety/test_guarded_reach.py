"""What people add in multi-user mode never connects to an address inside: the canary gets no hit.

Every form of an address comes by every way in: an MCP server by http and by SSE, an OpenAPI service by its
base address, by its document, by the configured server, by the servers of a document, and by redirects.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from address_forms import ALLOWED, NameServer, urls
from lures import Lure, document, open_lure

from dragoman import Hub
from dragoman.errors import DragomanError, InvalidConfig
from dragoman.hub.connector_settings import AuthSettings
from dragoman.scope import Caller
from dragoman.settings import Settings
from patience import patient
from servers.hubs import open_hub, runtime_of
from store.memory_store import memory_store

pytestmark = pytest.mark.anyio
TEAM: dict[str, Any] = {"multi_user": True, "allowed_networks": (f"{ALLOWED}/32",)}
QUICK: dict[str, Any] = {
    "connect_timeout": patient(2),
    "request_timeout": patient(2),
    "retry": {"tries": 1},
    "health_interval": 0,
    "auto_reconnect": False,
}
TOLD = "an address inside the network"

Attempt = Callable[[Hub, Lure, Caller, str, str], Awaitable[None]]


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    """The resolver of this machine, under the control of the test."""
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.getaddrinfo)
    return server


async def by_http(hub: Hub, lure: Lure, caller: Caller, name: str, url: str) -> None:
    await hub.acting_for(caller).connectors.add(name, url=f"{url}/mcp", transport="http", **QUICK)


async def by_sse(hub: Hub, lure: Lure, caller: Caller, name: str, url: str) -> None:
    await hub.acting_for(caller).connectors.add(name, url=f"{url}/sse", **QUICK)


async def by_base(hub: Hub, lure: Lure, caller: Caller, name: str, url: str) -> None:
    await hub.acting_for(caller).connectors.add(name, openapi=url, **QUICK)


async def by_document(hub: Hub, lure: Lure, caller: Caller, name: str, url: str) -> None:
    await hub.acting_for(caller).connectors.add(name, openapi=f"{url}/openapi.json", **QUICK)


async def by_server(hub: Hub, lure: Lure, caller: Caller, name: str, url: str) -> None:
    await hub.acting_for(caller).connectors.add(
        name, openapi=f"{lure.url}/plain/openapi.json", server=url, **QUICK
    )
    await hub.acting_for(caller).call(f"mcp_{name}_look")


WAYS = (by_http, by_sse, by_base, by_document, by_server)


def hub_for_hundreds(home: Path, **settings: Any) -> Hub:
    """Where so many connectors are kept makes no difference here: in a dictionary."""
    return Hub(Settings(home=home, **settings), store=memory_store())


async def try_all(hub: Hub, lure: Lure, attempts: list[tuple[Attempt, str]], per_user: int = 150) -> None:
    """Many at once; a refusal is as good as a failure."""
    lure.documents["/plain/openapi.json"] = document()
    turns = asyncio.Semaphore(24)

    async def one(index: int, attempt: Attempt, url: str) -> None:
        caller = Caller(workspace="acme", user=f"u{index // per_user}")
        async with turns:
            try:
                await attempt(hub, lure, caller, f"c{index}", url)
            except DragomanError:
                return

    async with asyncio.TaskGroup() as tasks:
        for index, (attempt, url) in enumerate(attempts):
            tasks.create_task(one(index, attempt, url))


def test_there_are_more_than_two_hundred_forms() -> None:
    assert len(set(urls(80))) >= 200


@pytest.mark.parametrize("way", WAYS)
async def test_no_form_of_an_address_gets_in(tmp_path: Path, way: Attempt) -> None:
    async with open_lure() as (canary, lure), hub_for_hundreds(tmp_path, **TEAM) as hub:
        forms = urls(canary.port)
        await try_all(hub, lure, [(way, url) for url in (forms[::3] if way is by_server else forms)])
        assert canary.hits == []


async def call_each_server(hub: Hub, lure: Lure, forms: list[str]) -> None:
    """One document whose operations are all somewhere else."""
    caller = Caller(workspace="acme", user="ann")
    answers = {"200": {"description": "ok"}}
    lure.documents["/many/openapi.json"] = document(
        paths={
            f"/{index}": {
                "get": {"operationId": f"look{index}", "servers": [{"url": form}], "responses": answers}
            }
            for index, form in enumerate(forms)
        }
    )
    view = await hub.acting_for(caller).connectors.add(
        "many", openapi=f"{lure.url}/many/openapi.json", **QUICK
    )
    assert view.tools == len(forms)
    turns = asyncio.Semaphore(24)

    async def one(index: int) -> None:
        async with turns:
            await hub.acting_for(caller).call(f"mcp_many_look{index}")

    async with asyncio.TaskGroup() as tasks:
        for index in range(len(forms)):
            tasks.create_task(one(index))


async def test_no_server_of_a_document_leads_inside(tmp_path: Path) -> None:
    async with open_lure() as (canary, lure), open_hub(tmp_path, **TEAM) as hub:
        await call_each_server(hub, lure, urls(canary.port))
        assert canary.hits == []


async def test_the_servers_of_a_document_do_lead_inside_where_everything_is_allowed(tmp_path: Path) -> None:
    everything = {"multi_user": True, "allowed_networks": ("0.0.0.0/0", "::/0")}
    async with open_lure() as (canary, lure), open_hub(tmp_path, **everything) as hub:
        await call_each_server(hub, lure, urls(canary.port))
        assert len(canary.hits) >= 10


@pytest.mark.parametrize("way", WAYS)
async def test_the_same_forms_do_reach_the_canary_where_everything_is_allowed(
    tmp_path: Path, way: Attempt
) -> None:
    """So that the test above is known to see a hole."""
    open_to_all = {"multi_user": True, "allowed_networks": ("0.0.0.0/0", "::/0")}
    async with open_lure() as (canary, lure), hub_for_hundreds(tmp_path, **open_to_all) as hub:
        some = [url for url in urls(canary.port) if url.startswith("http://127.0.0.") or ".test" in url]
        await try_all(hub, lure, [(way, url) for url in some[:40]])
        assert len(canary.hits) >= 10


async def test_the_allowed_address_works_by_every_way(tmp_path: Path) -> None:
    caller = Caller(workspace="acme", user="ann")
    async with open_lure() as (canary, lure), open_hub(tmp_path, **TEAM) as hub:
        lure.documents["/plain/openapi.json"] = document()
        for place in (lure.url, f"http://allowed.test:{canary.port}"):
            name = f"n{len(place)}"
            view = await hub.acting_for(caller).connectors.add(f"{name}-mcp", url=f"{place}/mcp", **QUICK)
            assert view.status.state == "connected", view.status.cause
            assert (await hub.acting_for(caller).call(f"mcp_{name}-mcp_look")).ok
            view = await hub.acting_for(caller).connectors.add(
                f"{name}-api", openapi=f"{place}/plain/openapi.json", **QUICK
            )
            assert view.status.state == "connected", view.status.cause
            assert (await hub.acting_for(caller).call(f"mcp_{name}-api_look")).ok
        assert canary.hits == []


@pytest.mark.parametrize("way", [by_http, by_sse, by_base, by_document])
async def test_a_forbidden_address_is_a_final_error_that_tells_no_address(
    tmp_path: Path, way: Attempt
) -> None:
    caller = Caller(workspace="acme", user="ann")
    async with open_lure() as (canary, _lure), open_hub(tmp_path, **TEAM) as hub:
        for name, host in (
            ("name", "other.test"),
            ("mixed", "half-allowed.test"),
            ("number", "169.254.169.254"),
        ):
            forever: dict[str, Any] = {**QUICK, "auto_reconnect": True}
            wanted = f"http://{host}:{canary.port}"
            facts = {"url": f"{wanted}/mcp"} if way is by_http else {"url": f"{wanted}/sse"}
            facts = facts if way in (by_http, by_sse) else {"openapi": wanted}
            view = await hub.acting_for(caller).connectors.add(name, **facts, **forever)
            assert view.status.state == "error"
            assert TOLD in (view.status.cause or "")
            assert "127.0.0" not in f"{view.status.cause}{view.status.hint}"
            assert "DRAGOMAN_ALLOWED_NETWORKS" in (view.status.hint or "")
            assert view.status.next_attempt is None
        assert canary.hits == []


@pytest.mark.parametrize("hops", [1, 3])
async def test_no_redirect_leads_inside(tmp_path: Path, hops: int) -> None:
    async with open_lure() as (canary, lure), hub_for_hundreds(tmp_path, **TEAM) as hub:
        attempts: list[tuple[Attempt, str]] = []
        for status in (301, 302, 303, 307, 308):
            for place in ("127.0.0.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "loopback.test"):
                target = f"http://{place}:{canary.port}/openapi.json"
                start = f"{lure.url}/redirect/{status}/{hops}?to={target}&x="
                attempts += [(way, start) for way in WAYS]
        await try_all(hub, lure, attempts)
        assert (
            len([path for path, _ in lure.seen if path.startswith("/redirect/")]) >= len(attempts) * hops // 2
        )
        assert canary.hits == []


async def test_the_second_answer_of_a_name_server_is_checked_like_the_first(
    tmp_path: Path, names: NameServer
) -> None:
    """Rebinding: the name is allowed when it is looked at, and leads inside when it is used."""
    caller = Caller(workspace="acme", user="ann")
    async with open_lure() as (canary, lure), open_hub(tmp_path, **TEAM) as hub:
        lure.documents["/plain/openapi.json"] = document()
        place = f"http://rebind.test:{canary.port}"
        for name, facts in (
            ("http", {"url": f"{place}/mcp"}),
            ("sse", {"url": f"{place}/sse"}),
            ("api", {"openapi": f"{place}/plain/openapi.json"}),
            ("moved", {"openapi": f"{place}/redirect/307/1?to=/plain/openapi.json"}),
        ):
            names.rebinding["rebind.test"] = [(ALLOWED,), ("127.0.0.1",)]
            lure.on_request = lambda request: _forget_names(hub)
            _forget_names(hub)
            lure.seen.clear()
            view = await hub.acting_for(caller).connectors.add(name, **facts, **QUICK)
            output = await hub.acting_for(caller).call(f"mcp_{name}_look")
            assert not output.ok
            said = f"{view.status.cause} {output.error and output.error.message}"
            assert lure.seen, name  # the first answer led to what is allowed
            assert TOLD in said, (name, said)
        assert canary.hits == []


def _forget_names(hub: Hub) -> None:
    connector = runtime_of(hub).clients.guarded.connector
    assert connector is not None
    connector.clear_dns_cache()  # pyright: ignore[reportAttributeAccessIssue]


async def test_an_endpoint_event_does_not_lead_inside(tmp_path: Path) -> None:
    caller = Caller(workspace="acme", user="ann")
    async with open_lure() as (canary, lure), open_hub(tmp_path, **TEAM) as hub:
        for index, host in enumerate(("127.0.0.1", "[::1]", "localhost", f"{ALLOWED}@127.0.0.1")):
            lure.endpoint = f"http://{host}:{canary.port}/messages"
            view = await hub.acting_for(caller).connectors.add(f"s{index}", url=f"{lure.url}/sse", **QUICK)
            assert view.status.state == "error"
        assert canary.hits == []


async def test_references_in_a_document_fetch_nothing(tmp_path: Path) -> None:
    caller = Caller(workspace="acme", user="ann")
    async with open_lure() as (canary, lure), open_hub(tmp_path, **TEAM) as hub:
        away = f"http://127.0.0.1:{canary.port}/schema.json#/a"
        lure.documents["/openapi.json"] = document(
            paths={
                "/a": {"$ref": away},
                "/look": {"get": {"operationId": "look", "parameters": [{"$ref": away}], "responses": {}}},
            },
            components={"schemas": {"A": {"$ref": away}, "B": {"$ref": "file:///etc/passwd"}}},
        )
        await hub.acting_for(caller).connectors.add("api", openapi=lure.url, **QUICK)
        await hub.acting_for(caller).call("mcp_api_look")
        assert canary.hits == []


async def test_a_proxy_of_the_environment_is_not_used_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_lure() as (canary, lure), open_hub(tmp_path, **TEAM) as hub:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
        monkeypatch.setenv("no_proxy", "")
        for host in (ALLOWED, "allowed.test", "127.0.0.1"):
            await try_all(hub, lure, [(way, f"http://{host}:{canary.port}") for way in WAYS])
        assert canary.hits == []
        assert lure.seen


async def test_what_the_operator_adds_goes_anywhere(tmp_path: Path) -> None:
    async with open_lure() as (canary, _lure), open_hub(tmp_path, **TEAM) as hub:
        await hub.connectors.add("inside", url=f"http://127.0.0.1:{canary.port}/mcp", **QUICK)
        assert canary.hits


async def test_one_user_alone_goes_anywhere(tmp_path: Path) -> None:
    async with open_lure() as (canary, _lure), open_hub(tmp_path) as hub:
        await hub.connectors.add("inside", url=f"http://127.0.0.1:{canary.port}/mcp", **QUICK)
        assert canary.hits


async def test_trusted_and_guarded_connectors_share_no_connection(tmp_path: Path) -> None:
    """The operator's open connection to a place inside is no way in for anybody else."""
    caller = Caller(workspace="acme", user="ann")
    async with open_lure() as (_canary, lure), open_hub(tmp_path, multi_user=True) as hub:
        lure.documents["/plain/openapi.json"] = document()
        facts: dict[str, Any] = {"openapi": f"{lure.url}/plain/openapi.json", **QUICK}
        assert (await hub.connectors.add("ours", **facts)).status.state == "connected"
        assert (await hub.call("mcp_ours_look")).ok
        lure.seen.clear()
        assert TOLD in ((await hub.acting_for(caller).connectors.add("theirs", **facts)).status.cause or "")
        assert lure.seen == []


@pytest.mark.parametrize("network", ["10.0.0.0/40", "anything"])
async def test_a_wrong_network_ends_the_start(tmp_path: Path, network: str) -> None:
    with pytest.raises(InvalidConfig, match="allowed_networks"):
        async with open_hub(tmp_path, multi_user=True, allowed_networks=(network,)):
            pass


async def test_no_search_for_who_authorises_leads_inside(tmp_path: Path) -> None:
    """The issuer that people name, and the one that their server names."""
    caller = Caller(workspace="acme", user="ann")
    async with open_lure() as (canary, lure), open_hub(tmp_path, **TEAM) as hub:
        for index, url in enumerate(urls(canary.port)[::12]):
            named, own = f"named{index}", f"own{index}"
            lure.documents[f"/.well-known/oauth-protected-resource/{own}/mcp"] = {
                "resource": f"{lure.url}/{own}/mcp",
                "authorization_servers": [url],
            }
            ways: list[tuple[str, AuthSettings]] = [
                (named, {"kind": "oauth", "issuer": url}),
                (own, {"kind": "oauth"}),
            ]
            for name, auth in ways:
                place = f"{lure.url}/{name}/mcp"
                try:
                    await hub.acting_for(caller).connectors.add(name, url=place, auth=auth, **QUICK)
                    link = await hub.acting_for(caller).credentials.authorize(
                        name, address="http://127.0.0.1:1"
                    )
                    await hub.credentials.begin(link.url.rpartition("=")[2].rpartition("/")[2])
                except DragomanError:
                    continue
                raise AssertionError(f"{url} was taken for an issuer")
        assert any("oauth-protected-resource" in path for path, _ in lure.seen)
        assert canary.hits == []
