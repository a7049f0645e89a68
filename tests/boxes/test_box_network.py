"""What a boxed program reaches: everything, nothing, or the places of a list, by our proxy alone."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from boxes.boxed import PROGRAM, added, called, needs, open_hub
from dragoman.connections.boxes.network import PROXY, BoxProxy, NetworkDecision, NetworkRule, NetworkUse
from dragoman.errors import InvalidConfig
from dragoman.scope import LOCAL_CALLER
from servers.hubs import until

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def a_service() -> AsyncGenerator[int]:
    """A service of this machine; its port."""

    async def hello(request: web.Request) -> web.Response:
        return web.Response(text=f"hello from {request.path}")

    app = web.Application()
    app.router.add_get("/{tail:.*}", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_a_listed_place_is_reached_with_and_without_a_proxy_and_no_other(tmp_path: Path) -> None:
    needs("bubblewrap")
    async with a_service() as port, a_service() as other, open_hub(tmp_path) as hub:
        await added(hub, network=[f"localhost:{port}"])
        plain = (
            f"GET http://localhost:{port}/one HTTP/1.1\r\nHost: localhost\r\nProxy-Connection: close\r\n\r\n"
        )
        tunnel = f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n"
        elsewhere = f"CONNECT localhost:{other} HTTP/1.1\r\n\r\n"
        metadata = "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: x\r\n\r\n"
        found = await called(
            hub,
            "look",
            connect=[f"localhost:{port}", f"localhost:{other}", f"example.com:{port}"],
            proxy=[plain, tunnel, elsewhere, metadata],
        )
        assert "hello from /" in found[f"localhost:{port}"]
        assert "hello from /one" in found[plain]
        assert " 200 " in found[tunnel]
        assert found[f"localhost:{other}"].startswith("failed")
        assert found[f"example.com:{port}"].startswith("failed")
        assert f"localhost:{other} is refused" in found[elsewhere]
        assert " 403 " in found[metadata]

        async def told() -> bool:
            entries = [one for one in await hub.audit.list() if one.action == "connector.network"]
            seen = {(one.details["place"], one.outcome) for one in entries}
            return {(f"localhost:{port}", "ok"), (f"localhost:{other}", "refused")} <= seen

        await until(told)


async def test_a_box_without_a_network_reaches_not_even_its_machine(tmp_path: Path) -> None:
    async with a_service() as port, open_hub(tmp_path) as hub:
        for mode in ("bubblewrap", "landlock"):
            needs(mode)
            await added(hub, mode, network="none", sandbox=mode)
            found = await called(hub, "look", mode, connect=[f"127.0.0.1:{port}"])
            assert found[f"127.0.0.1:{port}"].startswith("failed")


async def test_with_many_users_the_full_network_has_those_inside_addresses_that_the_operator_names(
    tmp_path: Path,
) -> None:
    needs("bubblewrap")
    paths = (str(PROGRAM.parent),)
    async with a_service() as port, open_hub(tmp_path, multi_user=True, box_paths=paths) as hub:
        place = f"127.0.0.1:{port}"
        asked = f"CONNECT {place} HTTP/1.1\r\n\r\n"
        admin = hub.acting_for(replace(LOCAL_CALLER, user="ada", role="admin"))
        for door, name, network, is_reached in (
            (hub, "operators", ["full"], False),
            (hub, "named", ["full", place], True),
            (admin, "adas", ["full"], False),
            (admin, "evas", ["full", place], False),
        ):
            await added(door, name, network=network)
            found = await called(door, "look", name, connect=[place], proxy=[asked])
            assert ("hello from /" in found[place]) == is_reached, name
            assert ("inside the network" in found[asked]) != is_reached, name
        view = await hub.connectors.get("operators")
        assert view.box is not None
        assert view.box.network == "full without addresses inside"
        assert [one.becomes for one in await hub.connectors.needs("operators")] == [("full", place)]
        async with open_hub(tmp_path / "b", multi_user=True, allowed_networks=("127.0.0.0/8",)) as other:
            await added(other)
            assert " 200 " in (await called(other, "look", proxy=[asked]))[asked]


@pytest.mark.parametrize("mode", ["landlock", "none"])
async def test_a_list_that_cannot_be_enforced_is_refused_and_says_so(mode: str, tmp_path: Path) -> None:
    needs(mode)
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidConfig, match="cannot be enforced"):
            await added(hub, sandbox=mode, network=["example.com:443"])
        assert not [view for view in await hub.connectors.list() if view.connector.slug == "hostile"]


def test_a_rule_names_hosts_with_their_ports_and_all_below_a_name() -> None:
    rule = NetworkRule(("api.example.com:443", "*.example.org:8443"))
    assert rule.names("api.example.com", 443)
    assert rule.names("a.b.example.org", 8443)
    assert not rule.names("api.example.com", 80)
    assert not rule.names("example.org", 8443)
    assert not rule.names("badexample.org", 8443)
    assert rule.admits("93.184.215.14", "api.example.com", 443)
    assert not rule.admits("10.0.0.1", "api.example.com", 443)


def test_who_is_trusted_names_inside_places_but_never_metadata() -> None:
    for rule in (NetworkRule(("db:5432",), is_trusted=True), NetworkRule(("full", "db:5432"), (), True)):
        assert rule.admits("10.0.0.1", "db", 5432)
        assert rule.admits("10.0.0.1", "db")
        assert not rule.admits("10.0.0.1", "db", 22)
        assert not rule.admits("10.0.0.1", "rebound.example.com", 5432)
        assert not rule.admits("169.254.169.254", "db", 5432)
        assert not rule.admits("fd00:ec2::254", "db", 5432)


async def test_what_goes_wrong_with_one_connection_leaves_the_box_its_way_out() -> None:
    faults = [OSError("no descriptor is left")]

    def tell(decision: NetworkDecision) -> None:
        if faults:
            raise ExceptionGroup("of one connection", [faults.pop()])

    async def asked(head: str) -> bytes:
        reader, writer = await asyncio.open_connection(*entrance.getsockname())
        writer.write(head.encode())
        answer = await reader.read()
        writer.close()
        return answer

    entrance = socket.create_server(("127.73.0.5", PROXY[1]))
    async with (
        a_service() as port,
        BoxProxy(NetworkRule((f"localhost:{port}",), is_trusted=True), tell, NetworkUse()) as way,
    ):
        answering = asyncio.create_task(way.answer([entrance]))
        plain = f"GET http://localhost:{port}/one HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert b"names no HOST:PORT" in await asked(f"CONNECT localhost:{'9' * 5000} HTTP/1.1\r\n\r\n")
        assert await asked(plain) == b""
        assert b"hello from /one" in await asked(plain)
        answering.cancel()
        await asyncio.wait([answering])


async def test_one_box_takes_neither_all_descriptors_nor_the_memory_of_who_answers_it() -> None:
    use = NetworkUse()
    entrance = socket.create_server(("127.73.0.6", PROXY[1]), backlog=300)
    async with BoxProxy(NetworkRule(("localhost:1",)), lambda decision: None, use) as way:
        answering = asyncio.create_task(way.answer([entrance]))
        idle = [await asyncio.open_connection(*entrance.getsockname()) for _ in range(150)]
        await until(lambda: use.connections == 100)
        for _, writer in idle:
            writer.close()
        await until(lambda: use.connections == 150)
        for number in range(250):
            reader, writer = await asyncio.open_connection(*entrance.getsockname())
            name = f"{number}.example.com" if number else "x" * 5000
            writer.write(f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
            answer = await reader.read()
            assert (b"not in the connector's network" if number else b"names no HOST:PORT") in answer
            writer.close()
        assert len(use.refused) == 200
        answering.cancel()
        await asyncio.wait([answering])
