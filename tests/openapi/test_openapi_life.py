"""A real FastAPI service that changes, goes down and comes back, and the connector that follows it."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from echo import document, open_echo, operation
from living_service import LivingService
from pydantic import BaseModel

from servers.hubs import open_hub, quick, state_is, until

pytestmark = pytest.mark.anyio


def hello(name: str = "you") -> dict[str, str]:
    """Greets."""
    return {"hello": name}


async def test_tools_appear_change_their_version_and_disappear(tmp_path: Path) -> None:
    service = LivingService()
    service.put("/hello", hello)
    async with service.running(), open_hub(tmp_path) as hub:
        view = await hub.connectors.add("live", kind="openapi", openapi=service.url, **quick())
        assert (view.status.state, view.tools) == ("connected", 1)

        class Order(BaseModel):
            item: str
            count: int = 1

        def order(order: Order) -> Order:
            return order

        service.put("/orders", order, "POST")
        appeared = await hub.connectors.refresh("live")
        made = await hub.call("mcp_live_order", {"item": "tea"})

        def hello_(name: str, loud: bool = False) -> dict[str, str]:
            return {"hello": name.upper() if loud else name}

        hello_.__name__ = "hello"
        service.put("/hello", hello_)
        changed = await hub.connectors.refresh("live")
        loud = await hub.call("mcp_live_hello", {"name": "ann", "loud": True})
        versions = await hub.tools.versions("mcp_live_hello")
        service.remove("order")
        gone = await hub.connectors.refresh("live")
        missing = await hub.call("mcp_live_order", {"item": "tea"})
    assert [tool.original_name for tool in appeared.added] == ["order"]
    assert made.result == {"item": "tea", "count": 1}
    assert [change.tool.version for change in changed.changed] == [2]
    assert "loud" in changed.changed[0].diff
    assert loud.result == {"hello": "ANN"}
    assert [version.version for version in versions] == [1, 2]
    assert [tool.original_name for tool in gone.removed] == ["order"]
    assert missing.error is not None
    assert missing.error.code == "not_found"


async def test_an_unchanged_document_is_not_sent_again(tmp_path: Path) -> None:
    service = LivingService()
    service.put("/hello", hello)
    async with service.running(), open_hub(tmp_path) as hub:
        await hub.connectors.add("live", kind="openapi", openapi=service.url, **quick())
        before = service.unchanged
        for _ in range(3):
            assert not await hub.connectors.refresh("live")
    assert (service.full, service.unchanged - before) == (1, 3)


async def test_a_service_in_use_is_looked_at_again_when_its_time_has_passed(tmp_path: Path) -> None:
    service = LivingService()
    service.put("/hello", hello)
    async with service.running(), open_hub(tmp_path) as hub:
        await hub.connectors.add("live", kind="openapi", openapi=service.url, document_ttl=0, **quick())

        def later() -> str:
            return "later"

        service.put("/later", later)

        async def has_appeared() -> bool:
            assert (await hub.call("mcp_live_hello")).ok
            return len(hub.tools.list("live")) == 2

        await until(has_appeared)
        asked = service.full + service.unchanged
    assert asked < 8  # not once per call


async def test_a_service_that_is_down_keeps_its_tools_shows_its_state_and_comes_back_by_itself(
    tmp_path: Path,
) -> None:
    service = LivingService()
    service.put("/hello", hello)
    async with open_hub(tmp_path) as hub:
        async with service.running():
            await hub.connectors.add("live", kind="openapi", openapi=service.url, **quick())
        failed = await hub.call("mcp_live_hello")
        down = await hub.connectors.get("live")
        async with service.running():
            await state_is(hub, "live", "connected")
            back = await hub.call("mcp_live_hello")
            after = await hub.connectors.get("live")
    assert failed.error is not None
    assert (failed.error.code, failed.error.retryable) == ("unreachable", True)
    assert (down.status.state, down.tools) == ("error", 1)
    assert down.status.cause
    assert down.status.next_attempt is not None
    assert back.ok
    assert after.status.cause is None
    assert after.status.reconnects == 1


async def test_a_call_while_it_waits_tries_at_once(tmp_path: Path) -> None:
    service = LivingService()
    service.put("/hello", hello)
    async with open_hub(tmp_path) as hub:
        async with service.running():
            await hub.connectors.add(
                "live", kind="openapi", openapi=service.url, auto_reconnect=False, **quick()
            )
        assert not (await hub.call("mcp_live_hello")).ok
        async with service.running():
            assert (await hub.connectors.get("live")).status.state == "error"
            assert (await hub.call("mcp_live_hello")).ok
            assert (await hub.connectors.get("live")).status.state == "connected"


async def test_a_service_that_comes_late_appears_by_itself(tmp_path: Path) -> None:
    service = LivingService()
    service.put("/hello", hello)
    async with service.running():
        pass
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("live", kind="openapi", openapi=service.url, **quick())
        assert (view.status.state, view.tools) == ("error", 0)
        assert "no service answers" in (view.status.cause or "")
        async with service.running():
            await state_is(hub, "live", "connected")
            await until(lambda: len(hub.tools.list("live")) == 1)


async def test_calls_go_on_while_only_the_document_is_broken(tmp_path: Path) -> None:
    service = LivingService()
    service.put("/hello", hello)
    async with service.running(), open_hub(tmp_path) as hub:
        await hub.connectors.add("live", kind="openapi", openapi=service.url, **quick())
        service.document_status = 500
        with pytest.raises(Exception, match="500"):
            await hub.connectors.refresh("live")
        output = await hub.call("mcp_live_hello")
        view = await hub.connectors.get("live")
    assert output.ok
    assert (view.status.state, view.tools) == ("connected", 1)
    assert "500" in (view.status.cause or "")


async def test_after_a_restart_a_call_needs_no_document(tmp_path: Path) -> None:
    async with open_echo() as echo:
        echo.serve("/openapi.json", document({"/a/{id}": {"get": operation("a")}}))
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("live", kind="openapi", openapi=echo.url, **quick())
        echo.serve_text("/openapi.json", "gone", status=503)
        echo.seen.clear()
        async with open_hub(tmp_path) as hub:
            assert echo.seen == []
            output = await hub.call("mcp_live_a", {"id": "7"})
    assert output.ok
    assert echo.seen[0].target == "/a/7"


async def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        file = tmp_path / "api.json"

        def write(*names: str) -> None:
            made = document({f"/{name}": {"get": operation(name)} for name in names})
            file.write_bytes(orjson.dumps(made))

        write("a")
        await hub.connectors.add("live", kind="openapi", openapi=str(file), server=echo.url, **quick())
        write("a", "b")
        changes = await hub.connectors.refresh("live")
        output = await hub.call("mcp_live_b")
    assert [tool.original_name for tool in changes.added] == ["b"]
    assert output.result["target"] == "/b"


@pytest.mark.parametrize(
    ("servers", "path"),
    [
        ([], "/api/thing"),  # the base that the person gave
        ([{"url": "/v2"}], "/v2/thing"),
        ([{"url": "v3/"}], "/api/v3/thing"),
        ([{"url": "{root}/v4", "variables": {"root": {"default": "/r"}}}], "/r/v4/thing"),
        ([{"url": "."}], "/api/thing"),
    ],
)
async def test_servers_may_be_missing_relative_or_templated(
    servers: list[Any], path: str, tmp_path: Path
) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        echo.serve("/api/openapi.json", document({"/thing": {"get": operation("get")}}, servers=servers))
        await hub.connectors.add("shop", kind="openapi", openapi=f"{echo.url}/api", **quick())
        output = await hub.call("mcp_shop_get")
    assert output.result["target"] == path


ROOT = {"url": "{root}/v4", "variables": {"root": {"default": "/r"}}}
HOST = {"url": "https://{name}.example/v5", "variables": {"name": {"default": "shop"}}}


@pytest.mark.parametrize(
    ("configured", "servers", "path"),
    [
        # A path that the person gave is the service's, whatever the document says.
        *(
            ("/gate", servers, "/gate/thing")
            for servers in ([], [{"url": "/"}], [{"url": "/v2"}], [{"url": "v3/"}], [{"url": "."}], [ROOT])
        ),
        ("/gate/", [{"url": "/v2"}], "/gate/thing"),
        ("/gate/v1", [{"url": "https://shop.example/v2"}], "/gate/v1/thing"),
        ("/gate", [HOST], "/gate/thing"),
        # A host alone says nothing of the path.
        ("", [], "/thing"),
        ("", [{"url": "/"}], "/thing"),
        ("", [{"url": "/v2"}], "/v2/thing"),
        ("/", [{"url": "/v2/"}], "/v2/thing"),
        ("", [{"url": "v3/"}], "/v3/thing"),
        ("", [ROOT], "/r/v4/thing"),
        ("", [{"url": "https://shop.example/v2"}], "/thing"),
        ("", [HOST], "/thing"),
    ],
)
async def test_the_server_that_a_person_gives_is_where_the_service_is(
    configured: str, servers: list[Any], path: str, tmp_path: Path
) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        echo.serve("/api/openapi.json", document({"/thing": {"get": operation("get")}}, servers=servers))
        place = f"{echo.url}{configured}"
        await hub.connectors.add("shop", kind="openapi", openapi=f"{echo.url}/api", server=place, **quick())
        output = await hub.call("mcp_shop_get")
    assert output.result["target"] == path, output.error


async def test_a_service_without_an_address_says_what_to_set(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        file = tmp_path / "api.json"
        file.write_bytes(orjson.dumps(document({"/a": {"get": operation("a")}}, servers=[{"url": "/v1"}])))
        await hub.connectors.add("shop", kind="openapi", openapi=str(file), **quick())
        output = await hub.call("mcp_shop_a")
    assert output.error is not None
    assert output.error.code == "invalid_config"
    assert "server" in (output.error.hint or "")


async def test_removing_it_lets_a_call_under_way_finish(tmp_path: Path) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        started.set()
        await release.wait()
        return "done"

    service = LivingService()
    service.put("/slow", slow)
    async with service.running(), open_hub(tmp_path) as hub:
        await hub.connectors.add("live", kind="openapi", openapi=service.url, **quick())
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(hub.call("mcp_live_slow"))
            await started.wait()
            await hub.connectors.remove("live")
            assert (hub.tools.list(), hub.links()) == ([], [])
            assert not call.done()
            release.set()
        assert call.result().result == "done"
        assert hub.links() == []
